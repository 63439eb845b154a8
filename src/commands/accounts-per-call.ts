import { PublicKey } from "@solana/web3.js";
import { createCallEndpoint, type Endpoint } from "../chain/rpc/rpc-endpoint.ts";
import { MAX_ACCOUNTS_PER_CALL } from "../chain/rpc/read-accounts.ts";
import { refusesSize } from "../chain/rpc/rpc-error.ts";
import { withDeadline } from "../chain/rpc/deadline.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import type { CallUpstream } from "../upstream/http.ts";

/** The limits of providers' cheap plans. */
const SMALLER_CALLS = [50, 25, 10, 5, 1];
const NO_DATA = { offset: 0, length: 0 };

/** Returns a function that checks how many accounts an endpoint returns per call. `text` says its cluster. */
export function createExamineEndpoint(needs: { callUpstream: CallUpstream; timeoutMs: number }) {
  const callEndpoint = createCallEndpoint(needs);

  return async (endpoint: Endpoint, text: string): Promise<Finding> => {
    const { limit, isUsable } = await findAccountLimit((keys) => {
      const params = [keys, { encoding: "base64", dataSlice: NO_DATA }];
      return withDeadline(needs.timeoutMs, (deadline) =>
        callEndpoint(endpoint, "getMultipleAccounts", params, deadline),
      );
    });
    if (limit === MAX_ACCOUNTS_PER_CALL)
      return good("SOLANA_RPC_URL", `${text} and returns ${limit} accounts per call`);
    const problem = `${endpoint.host} returns ${limit} accounts per call, not ${MAX_ACCOUNTS_PER_CALL}`;
    return isUsable
      ? poor("SOLANA_RPC_URL", `${problem}: the service makes more calls to it; a larger plan needs fewer`)
      : bad("SOLANA_RPC_URL", `${problem}: choose a plan without this limit`);
  };
}

/**
 * The largest call that an endpoint accepts, of the sizes tried; and whether the service can use the endpoint: it
 * splits only calls whose refusal looks like one for their size.
 */
async function findAccountLimit(
  readAccounts: (keys: readonly string[]) => Promise<unknown>,
): Promise<{ limit: number; isUsable: boolean }> {
  let isUsable = true;
  for (const size of [MAX_ACCOUNTS_PER_CALL, ...SMALLER_CALLS]) {
    const keys = Array.from({ length: size }, (_, i) => new PublicKey(i + 1).toBase58());
    try {
      await readAccounts(keys);
      return { limit: size, isUsable };
    } catch (error) {
      isUsable &&= refusesSize(error);
    }
  }
  return { limit: 0, isUsable: false };
}

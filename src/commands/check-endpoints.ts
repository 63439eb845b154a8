import { PublicKey } from "@solana/web3.js";
import { createCallEndpoint, toEndpoints } from "../chain/rpc/endpoint.ts";
import { createProgress } from "../chain/rpc/progress.ts";
import { MAX_ACCOUNTS_PER_CALL } from "../chain/rpc/read-accounts.ts";
import { refusesSize, type RpcError } from "../chain/rpc/rpc-error.ts";
import type { RpcMethod } from "../chain/rpc/rpc-results.ts";
import { withDeadline } from "../chain/rpc/shared-read.ts";
import type { Config } from "../config.ts";
import { nameOfCluster } from "../preflight.ts";
import type { CallUpstream } from "../upstream/http.ts";
import { bad, good, poor, type Finding } from "./finding.ts";

/** The limits of providers' cheap plans. */
const SMALLER_CALLS = [50, 25, 10, 5, 1];
const NO_DATA = { offset: 0, length: 0 };

/** Checks each endpoint by itself: that it answers, its cluster, and how many accounts it returns per call. */
export async function checkEndpoints(
  { chain, secrets }: Config,
  { callUpstream }: { callUpstream: CallUpstream },
): Promise<Finding[]> {
  const callEndpoint = createCallEndpoint({ callUpstream, slots: createProgress() });
  const endpoints = await Promise.all(
    toEndpoints(secrets.rpcUrls).map(async (endpoint) => {
      const { host } = endpoint;
      const call = <M extends RpcMethod>(method: M, params: unknown[]) =>
        withDeadline(chain.rpcTimeoutMs, (deadline) => callEndpoint(endpoint, method, params, deadline));
      try {
        const genesisHash = await call("getGenesisHash", []);
        const accounts = await findAccountLimit((keys) =>
          call("getMultipleAccounts", [keys, { encoding: "base64", dataSlice: NO_DATA }]),
        );
        return { host, genesisHash, accounts };
      } catch (error) {
        return { host, error: error as RpcError };
      }
    }),
  );
  const expected = endpoints.find(({ genesisHash }) => genesisHash)?.genesisHash;
  return endpoints.map(({ host, error, genesisHash, accounts }) => {
    if (error) return bad("SOLANA_RPC_URL", `${host} does not answer (${reasonOf(error)}): ${fixFor(error)}`);
    const cluster = nameOfCluster(genesisHash);
    if (genesisHash !== expected) {
      return bad(
        "SOLANA_RPC_URL",
        `${host} is on ${cluster}, the first on ${nameOfCluster(expected)}: use endpoints of one cluster`,
      );
    }
    const { limit, isUsable } = accounts;
    if (limit < MAX_ACCOUNTS_PER_CALL) {
      const text = `${host} returns ${limit} accounts per call, not ${MAX_ACCOUNTS_PER_CALL}`;
      return isUsable
        ? poor("SOLANA_RPC_URL", `${text}: the service makes more calls to it; a larger plan needs fewer`)
        : bad("SOLANA_RPC_URL", `${text}: choose a plan without this limit`);
    }
    return good("SOLANA_RPC_URL", `${host} is on ${cluster} and returns ${limit} accounts per call`);
  });
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

function reasonOf({ failure, code }: RpcError): string {
  return code === undefined ? failure : `${failure} ${code}`;
}

function fixFor({ code }: RpcError): string {
  if (code === 401 || code === 403) return "check the key in the URL";
  if (code === 429) return "its limit is used up, so choose a larger plan";
  return "check the URL, and that this machine can connect to it";
}

import { PublicKey } from "@solana/web3.js";
import { CLOCK_BYTES, CLOCK_SYSVAR, decodeClock } from "../chain/primitives/clock.ts";
import { FINALIZED } from "../chain/rpc/commitment.ts";
import { MAX_ACCOUNTS_PER_CALL } from "../chain/rpc/read-accounts.ts";
import { isRefusal, type RpcError } from "../chain/rpc/rpc-error.ts";
import type { RpcMethod, RpcResult } from "../chain/rpc/rpc-results.ts";
import { REFUSES } from "../checks/check-chain.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import { toError } from "../observability/thrown.ts";

/** As many accounts as the service reads in one call. Some providers' plans allow fewer. */
const LARGEST_CALL = [
  CLOCK_SYSVAR,
  ...Array.from({ length: MAX_ACCOUNTS_PER_CALL - 1 }, (_, i) => new PublicKey(i + 1).toBase58()),
];
const CLOCK_SLICE = { offset: 0, length: CLOCK_BYTES };
/** An endpoint's clock is usually some seconds behind. */
const STOPPED_MS = 60_000;

/** Calls an endpoint once, within the deadline of a call. */
export type Call = <M extends RpcMethod>(method: M, params: unknown[]) => Promise<RpcResult<M>>;

/**
 * Examines how well an endpoint suits the service. The finding's text starts with `text`, which
 * names the endpoint's cluster. `simulation`: the error of a simulated transaction, if it failed.
 */
export async function examineEndpoint(
  call: Call,
  text: string,
  simulation: RpcError | undefined,
): Promise<Finding> {
  const params = [LARGEST_CALL, { ...FINALIZED, encoding: "base64", dataSlice: CLOCK_SLICE }];
  const answer = await call("getMultipleAccounts", params).catch(toError);
  const calls = `calls for ${MAX_ACCOUNTS_PER_CALL} accounts`;
  if (answer instanceof Error)
    return bad("SOLANA_RPC_URL", `${text}; it refuses ${calls}: choose a plan without this limit`);
  if (isRefusal(simulation)) return bad("SOLANA_RPC_URL", `${text}; it ${REFUSES}`);
  if (simulation)
    return poor("SOLANA_RPC_URL", `${text}; it does not simulate transactions: collects need it`);
  const all = `${text}; it takes transactions of version 1, and accepts ${calls}`;
  const behindMs = Date.now() - (decodeClock(answer.value[0]?.data) ?? 0);
  if (behindMs > STOPPED_MS)
    return poor("SOLANA_RPC_URL", `${all}, but its chain stands still, or a clock is wrong`);
  return good("SOLANA_RPC_URL", all);
}

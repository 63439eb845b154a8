import { setTimeout as sleep } from "node:timers/promises";
import { PublicKey } from "@solana/web3.js";
import { FINALIZED } from "../chain/rpc/commitment.ts";
import { MAX_ACCOUNTS_PER_CALL } from "../chain/rpc/read-accounts.ts";
import { isRefusal, type RpcError } from "../chain/rpc/rpc-error.ts";
import type { RpcMethod, RpcResult } from "../chain/rpc/rpc-results.ts";
import { REFUSES } from "../checks/check-chain.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import { toError } from "../observability/thrown.ts";
import { monotonicNow, msBetween } from "../time/monotonic.ts";

/** As many accounts as the service reads in one call. Some providers' plans allow fewer. */
const LARGEST_CALL = Array.from({ length: MAX_ACCOUNTS_PER_CALL }, (_, i) =>
  new PublicKey(i + 1).toBase58(),
);
const NO_DATA = { offset: 0, length: 0 };
/** How long slots are counted. A leader may skip its four slots, of 200 or 400 ms. */
const COUNT_MS = 2_000;

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
  const [slotsPerSecond, refusal] = await Promise.all([
    countSlots(call).catch(() => undefined),
    call("getMultipleAccounts", [LARGEST_CALL, { encoding: "base64", dataSlice: NO_DATA }]).then(
      () => undefined,
      toError,
    ),
  ]);
  const pace = slotsPerSecond
    ? `makes ${slotsPerSecond.toFixed(1)} slots a second`
    : slotsPerSecond === 0
      ? "stands still, or its cluster does"
      : "does not return its slot";
  const all = `${text}; it ${pace}`;
  const calls = `calls for ${MAX_ACCOUNTS_PER_CALL} accounts`;
  if (refusal)
    return bad("SOLANA_RPC_URL", `${all}, and refuses ${calls}: choose a plan without this limit`);
  if (isRefusal(simulation)) return bad("SOLANA_RPC_URL", `${all}, and ${REFUSES}`);
  if (simulation)
    return poor("SOLANA_RPC_URL", `${all}, and does not simulate transactions: collects need it`);
  return (slotsPerSecond ? good : poor)(
    "SOLANA_RPC_URL",
    `${all}, takes transactions of version 1, and accepts ${calls}`,
  );
}

/** Returns the slots per second. */
async function countSlots(call: Call): Promise<number> {
  const read = async () => ({ slot: await call("getSlot", [FINALIZED]), at: monotonicNow() });
  const first = await read();
  await sleep(COUNT_MS);
  const last = await read();
  return ((last.slot - first.slot) * 1_000) / msBetween(first.at, last.at);
}

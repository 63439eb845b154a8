import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import { toLamports } from "./lamports.ts";
import { MAX_ACCOUNTS_A_CALL, type Account, type DataSlice, type Rpc } from "./rpc/rpc-client.ts";

/** Reads accounts as they are now, an {@link RpcError} for each that cannot be read; one that does not exist holds nothing. */
export type ReadAccounts = (
  addresses: readonly string[],
  signal?: AbortSignal,
) => Promise<(Account | Error)[]>;

/** Calls for accounts that are made at once; one that hangs must not hold up the others. */
const MAX_CALLS = 32;
/** How long accounts gather at most while a call is under way. */
const MAX_WAIT_MS = 50;

/** A token account's amount, a little-endian u64. Source: the Token program's account layout. */
export const TOKEN_AMOUNT: DataSlice = { offset: 64, length: 8 };

const NO_ACCOUNT: Account = { lamports: toLamports(0), data: Buffer.alloc(0) };

/**
 * Reads accounts for the whole process, merging what all callers wait for in the same moment into calls of
 * up to 100. Nothing is kept, and no one joins a call that left before they asked. Of the data only what
 * holds a token account's amount is read.
 */
export function createReadAccounts(rpc: Rpc, metrics: BatchMetrics): ReadAccounts {
  async function ask(addresses: readonly string[]): Promise<Map<string, Account>> {
    const accounts = await rpc.getAccounts(addresses, TOKEN_AMOUNT);
    return new Map(addresses.map((address, i) => [address, accounts[i] ?? NO_ACCOUNT]));
  }
  return createBatcher({
    ask,
    maxKeys: MAX_ACCOUNTS_A_CALL,
    maxCalls: MAX_CALLS,
    maxWaitMs: MAX_WAIT_MS,
    leaveAfterCalls: true,
    metrics,
  }).load;
}

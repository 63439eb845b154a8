import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import { toLamports } from "./lamports.ts";
import { MAX_ACCOUNTS_A_CALL, type Account, type Rpc } from "./rpc/rpc-client.ts";
import { TOKEN_AMOUNT } from "./token-accounts.ts";

/**
 * Reads accounts as they are now, in the order of `addresses`: an {@link RpcError} for each that cannot be
 * read, 0 lamports for one that does not exist.
 */
export type ReadAccounts = (
  addresses: readonly string[],
  signal?: AbortSignal,
) => Promise<(Account | Error)[]>;

/** Calls in flight at once: a call that hangs must not hold up the others. */
const MAX_CALLS = 32;
/** The longest that accounts wait for a batch while another call is in flight. */
const MAX_WAIT_MS = 50;

const NO_ACCOUNT: Account = { lamports: toLamports(0), data: Buffer.alloc(0) };

/**
 * Reads accounts for the whole process: merges what all callers need at the same moment into calls of up to
 * 100 accounts. Caches nothing, and no caller joins a call that left before it asked. Of an account's data
 * it reads only the amount of a token account.
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
    sendAfterCalls: true,
    metrics,
  }).load;
}

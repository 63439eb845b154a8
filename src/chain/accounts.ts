import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import { toLamports } from "./lamports.ts";
import { MAX_ACCOUNTS_PER_CALL, type Account, type Rpc } from "./rpc/rpc-client.ts";
import { TOKEN_AMOUNT } from "./token-accounts.ts";

/**
 * Reads the current state of accounts, in the order of `addresses`. A failed read gives an {@link RpcError}, a
 * missing account 0 lamports.
 */
export type ReadAccounts = (
  addresses: readonly string[],
  signal?: AbortSignal,
) => Promise<(Account | Error)[]>;

/** The most calls in flight. High, so that a call that hangs does not block the others. */
const MAX_CALLS = 32;
/** The longest an account waits for its batch to fill while another call is in flight. */
const MAX_WAIT_MS = 50;

const NO_ACCOUNT: Account = { lamports: toLamports(0), data: Buffer.alloc(0) };

/**
 * Reads accounts for the whole process: merges concurrent reads into calls of up to 100 accounts. Caches
 * nothing, and a read never joins a call that was sent before it. The only account data it reads is the
 * amount of a token account.
 */
export function createReadAccounts(rpc: Rpc, metrics: BatchMetrics): ReadAccounts {
  async function ask(addresses: readonly string[]): Promise<Map<string, Account>> {
    const accounts = await rpc.getAccounts(addresses, TOKEN_AMOUNT);
    return new Map(addresses.map((address, i) => [address, accounts[i] ?? NO_ACCOUNT]));
  }
  return createBatcher({
    ask,
    maxKeys: MAX_ACCOUNTS_PER_CALL,
    maxCalls: MAX_CALLS,
    maxWaitMs: MAX_WAIT_MS,
    sendAfterCalls: true,
    metrics,
  }).load;
}

import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import type { AccountAddresses } from "./addresses.ts";
import { toLamports } from "./lamports.ts";
import { MAX_ACCOUNTS_PER_CALL, type Account } from "./rpc/read-accounts.ts";
import type { Rpc } from "./rpc/rpc-client.ts";
import { TOKEN_AMOUNT } from "./token-accounts.ts";

/** The accounts of one wallet, all read in one slot, so that they are consistent. */
export interface WalletAccounts {
  readonly creatorVault: Account;
  readonly ammVault: Account;
  readonly address: Account;
}

/**
 * Reads wallets as they are now, in order: an {@link RpcError} for each that cannot be read, 0 lamports for
 * an account that does not exist.
 */
export type ReadWallets = (
  wallets: readonly AccountAddresses[],
  signal?: AbortSignal,
) => Promise<(WalletAccounts | Error)[]>;

const ACCOUNTS_PER_WALLET = 3;
/** A call of this many wallets is full. */
export const MAX_WALLETS_PER_CALL = Math.floor(MAX_ACCOUNTS_PER_CALL / ACCOUNTS_PER_WALLET);
/** Calls in flight at once: a call that hangs must not hold up the others. */
const MAX_CALLS = 32;
/** The longest that wallets wait for a batch while another call is in flight. */
const MAX_WAIT_MS = 50;

const NO_ACCOUNT: Account = { lamports: toLamports(0), data: Buffer.alloc(0) };

/**
 * Reads wallets for the whole process: merges the reads of concurrent callers into calls of up to 33 wallets.
 * The accounts of a wallet are read in one slot: a collect between them would show a total that never existed.
 * Caches nothing, and no caller joins a call that was sent before it asked. The only account data it
 * reads is the amount of a token account.
 */
export function createReadWallets(rpc: Rpc, metrics: BatchMetrics): ReadWallets {
  async function ask(keys: readonly string[]): Promise<Map<string, WalletAccounts>> {
    const wallets = await rpc.getAccounts(keys.map(toAddresses), TOKEN_AMOUNT);
    return new Map(
      keys.map((key, i) => {
        const [creatorVault = NO_ACCOUNT, ammVault = NO_ACCOUNT, address = NO_ACCOUNT] = wallets[i]!;
        return [key, { creatorVault, ammVault, address }];
      }),
    );
  }
  const batcher = createBatcher({
    ask,
    maxKeys: MAX_WALLETS_PER_CALL,
    maxCalls: MAX_CALLS,
    maxWaitMs: MAX_WAIT_MS,
    sendAfterCalls: true,
    metrics,
  });
  return (wallets, signal) => batcher.load(wallets.map(toKey), signal);
}

function toKey({ creatorVault, ammVault, address }: AccountAddresses): string {
  return [creatorVault, ammVault, address].join();
}

function toAddresses(key: string): string[] {
  return key.split(",");
}

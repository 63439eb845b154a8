import DataLoader from "dataloader";
import type { Balance, Balances, BalanceWith } from "../chain/balances/balances.ts";
import type { CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import { MAX_MINTS_PER_WALLET, tooManyMints } from "../contract/mint.ts";
import { identityOf, type WalletWithCoins } from "../chain/balances/wallets.ts";
import type { Caller } from "../fairness/caller.ts";
import { toError } from "../observability/thrown.ts";
import type { AccountLookup } from "../social/account-lookup.ts";
import { toHandleKey, type AccountKey, type SocialAccount } from "../social/account.ts";
import { monotonicNow, type MonotonicTime } from "../time/monotonic.ts";

export interface LoaderSources {
  readonly accountLookup: Pick<AccountLookup, "cached" | "find">;
  readonly balances: Pick<Balances, "getBalances">;
}

export type Loaders = ReturnType<typeof createLoaders>;

/**
 * Reads each account and balance once per request; after `clear`, reads balances again. All loads
 * of one tick form one batch, and the process-wide batchers merge the batches of all requests.
 * When the caller disconnects, pending reads are dropped and fail with the abort reason.
 */
export function createLoaders({ accountLookup, balances }: LoaderSources, caller: Caller) {
  /**
   * Numbers of accounts: found in the process's cache, not found in it (`social`), and read from
   * the chain.
   */
  const reads = { cached: 0, social: 0, chain: 0 };
  /** The accounts that the request has found, by id: the network charges for each account. */
  const accounts = new Map<string, SocialAccount>();
  const lookups = new Map<string, Promise<SocialAccount>>();

  async function find(
    keys: readonly AccountKey[],
    startedAt?: MonotonicTime,
  ): Promise<(SocialAccount | Error)[]> {
    const cachedCount = keys.filter((key) => accountLookup.cached(key)).length;
    reads.cached += cachedCount;
    reads.social += keys.length - cachedCount;
    const answers = await accountLookup.find(keys, caller, startedAt);
    for (const answer of answers) if (!(answer instanceof Error)) accounts.set(answer.id, answer);
    return answers;
  }

  /** Waits for this request's lookups by handle: one of them may find the same account. */
  async function findByIds(ids: readonly string[]): Promise<(SocialAccount | Error)[]> {
    const startedAt = monotonicNow();
    await Promise.allSettled(lookups.values());
    const missing = ids.filter((id) => !accounts.has(id));
    const found = await find(missing, startedAt);
    return ids.map((id) => accounts.get(id) ?? found[missing.indexOf(id)]!);
  }

  /** Reads each account once, with all coins that the request names for it. */
  async function loadBalances(wallets: readonly WalletWithCoins[]): Promise<(Balance | Error)[]> {
    const results = new Map<string, BalanceWith | Error>();
    const merged: WalletWithCoins[] = [];
    for (const [address, same] of Map.groupBy(wallets, ({ account }) => account.address)) {
      try {
        merged.push({ ...same[0]!, coins: allCoins(same.map(({ coins }) => coins)) });
      } catch (error) {
        results.set(address, toError(error));
      }
    }
    reads.chain += merged.length;
    const read = await balances.getBalances(merged, caller);
    merged.forEach(({ account }, i) => results.set(account.address, read[i]!));
    return wallets.map(({ account: { address }, coins }) => {
      const result = results.get(address)!;
      return result instanceof Error ? result : result(coins);
    });
  }

  const byHandle = new DataLoader(find, { cacheMap: lookups });
  const byId = new DataLoader(findByIds);
  const byWallet = new DataLoader(loadBalances, {
    cacheKeyFn: identityOf,
    batchScheduleFn(dispatch) {
      // Waits for the fields that run in this turn, and for the handles that are being looked up:
      // one may lead to the same account, with other coins.
      setImmediate(() => {
        void Promise.allSettled(lookups.values()).then(() => setImmediate(dispatch));
      });
    },
  });

  return {
    reads,

    /** The account of a case-insensitive handle. */
    accountByHandle: (handle: string) => byHandle.load(toHandleKey(handle)),

    /** The account of a canonical id. */
    accountById: (id: string) => byId.load(id),

    balance: (wallet: WalletWithCoins) => byWallet.load(wallet),

    /** Call when a balance may have changed: the next load of each balance reads the chain again. */
    clear(): void {
      byWallet.clearAll();
      // An account that was found is kept; one that was not may be found now.
      byId.clearAll();
    },
  };
}

/**
 * Merges the coin lists of one wallet's fields. Throws INVALID_MINT if there are too many coins.
 */
export function allCoins(
  coinLists: readonly (readonly CoinAddresses[])[],
): readonly CoinAddresses[] {
  const coins = new Map(coinLists.flat().map((coin) => [coin.mint, coin]));
  if (coins.size > MAX_MINTS_PER_WALLET) throw tooManyMints(coins.size, MAX_MINTS_PER_WALLET);
  return [...coins.values()];
}

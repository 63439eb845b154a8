import DataLoader from "dataloader";
import type { Balance, Balances, BalanceWith } from "../chain/balances/balances.ts";
import type { CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import { toLookupContractError } from "../chain/errors/to-contract-error.ts";
import { MAX_MINTS_PER_WALLET, tooManyMints } from "../contract/mint.ts";
import { identityOf, type WalletWithCoins } from "../chain/balances/wallets.ts";
import type { Caller } from "../fairness/caller.ts";
import { toError } from "../observability/thrown.ts";
import type { AccountLookup } from "../social/account-lookup.ts";
import type { SocialAccount } from "../social/account.ts";
import { toContractError as fromSocial } from "../social/to-contract-error.ts";
import { monotonicNow } from "../time/monotonic.ts";

/**
 * Numbers of accounts: found in the process's cache, not found in it (`social`), and read from the
 * chain.
 */
export interface Reads {
  cached: number;
  social: number;
  chain: number;
}

export interface LoaderSources {
  readonly accountLookup: Pick<
    AccountLookup,
    "cached" | "cachedById" | "findByHandles" | "findByIds"
  >;
  readonly balances: Pick<Balances, "getBalances">;
}

/**
 * Reads each account and balance once per request; after a collect, reads balances again. All loads
 * of one tick form one batch, and the process-wide batchers merge the batches of all requests.
 * Methods fail with ContractError. When the caller disconnects, pending reads are dropped and fail
 * with the abort reason.
 */
export class Loaders {
  readonly reads: Reads = { cached: 0, social: 0, chain: 0 };
  readonly #sources: LoaderSources;
  readonly #caller: Caller;
  // The fields below are created on demand, because most requests need only one or two.
  /** Hits in the process's cache, kept because the cache can change during the request. */
  #cachedByHandle: Map<string, SocialAccount | Error> | undefined;
  #loadsByHandle: Map<string, Promise<SocialAccount>> | undefined;
  #accountByHandle: DataLoader<string, SocialAccount> | undefined;
  #accountById: DataLoader<string, SocialAccount> | undefined;
  #accountsById: Map<string, SocialAccount> | undefined;
  #balance: DataLoader<WalletWithCoins, Balance, string> | undefined;

  constructor(sources: LoaderSources, caller: Caller) {
    this.#sources = sources;
    this.#caller = caller;
  }

  /** The account of a case-insensitive handle; not a promise if it is cached. */
  accountByHandle(text: string): SocialAccount | Promise<SocialAccount> {
    const handle = text.toLowerCase();
    const load = this.#loadsByHandle?.get(handle);
    if (load) return load;
    const cachedLookup = this.#cachedByHandle?.get(handle) ?? this.#takeFromCache(handle);
    if (cachedLookup instanceof Error) throw cachedLookup;
    if (cachedLookup) return cachedLookup;
    this.#accountByHandle ??= new DataLoader((handles) => this.#loadByHandles(handles), {
      cacheMap: (this.#loadsByHandle = new Map<string, Promise<SocialAccount>>()),
    });
    return this.#accountByHandle.load(handle);
  }

  /**
   * The account of a canonical id. Reuses accounts that the request found by handle, or by id for
   * an earlier event.
   */
  accountById(id: string): SocialAccount | Promise<SocialAccount> {
    const knownAccount = this.#accountsById?.get(id);
    if (knownAccount) return knownAccount;
    this.#accountById ??= new DataLoader((ids) => this.#loadByIds(ids));
    return this.#accountById.load(id);
  }

  balance(wallet: WalletWithCoins): Promise<Balance> {
    return this.#balances.load(wallet);
  }

  get #balances(): DataLoader<WalletWithCoins, Balance, string> {
    return (this.#balance ??= new DataLoader((wallets) => this.#loadBalances(wallets), {
      cacheKeyFn: identityOf,
      batchScheduleFn: (dispatch) => {
        onNextTick(() => {
          // A handle that is still being looked up may lead to the same account, with other coins.
          const lookups = this.#loadsByHandle;
          if (!lookups) dispatch();
          else onNextTick(dispatch, Promise.allSettled(lookups.values()));
        });
      },
    }));
  }

  /** Call when a balance may have changed: the next load of each balance reads the chain again. */
  clearBalances(): void {
    this.#balance?.clearAll();
  }

  /** Stores a balance that has just been read, for later loads. */
  setBalance(wallet: WalletWithCoins, balance: Balance): void {
    this.#balances.prime(wallet, balance);
  }

  /**
   * Loaders for a stream's next event. Keeps accounts found by id, because the network charges for
   * each account.
   */
  renew(): Loaders {
    const next = new Loaders(this.#sources, this.#caller);
    next.#accountsById = this.#accountsById;
    return next;
  }

  #takeFromCache(handle: string): SocialAccount | Error | undefined {
    const cachedLookup = this.#sources.accountLookup.cached(handle);
    if (!cachedLookup) return undefined;
    this.reads.cached++;
    const account = toLoaded(cachedLookup);
    (this.#cachedByHandle ??= new Map<string, SocialAccount | Error>()).set(handle, account);
    return account;
  }

  async #loadByHandles(handles: readonly string[]): Promise<(SocialAccount | Error)[]> {
    this.reads.social += handles.length;
    const accounts = await this.#sources.accountLookup.findByHandles(handles, this.#caller);
    return accounts.map(toLoaded);
  }

  /**
   * Waits for this request's lookups by handle first, because one of them may find the same
   * account.
   */
  async #loadByIds(ids: readonly string[]): Promise<(SocialAccount | Error)[]> {
    const startedAt = monotonicNow();
    const accounts = new Map<string, SocialAccount | Error>();
    for (const account of this.#cachedByHandle?.values() ?? [])
      if (!(account instanceof Error)) accounts.set(account.id, account);
    for (const load of await Promise.allSettled([...(this.#loadsByHandle?.values() ?? [])]))
      if (load.status === "fulfilled") accounts.set(load.value.id, load.value);

    const missing = ids.filter((id) => !accounts.has(id));
    if (missing.length > 0) {
      const { accountLookup } = this.#sources;
      const cachedCount = missing.filter((id) => accountLookup.cachedById(id)).length;
      this.reads.cached += cachedCount;
      this.reads.social += missing.length - cachedCount;
      const foundAccounts = await accountLookup.findByIds(missing, this.#caller, startedAt);
      missing.forEach((id, i) => {
        const account = toLoaded(foundAccounts[i] ?? noAnswer(id));
        accounts.set(id, account);
        if (!(account instanceof Error))
          (this.#accountsById ??= new Map<string, SocialAccount>()).set(id, account);
      });
    }
    return ids.map((id) => accounts.get(id) ?? noAnswer(id));
  }

  /** Reads each account once, with all coins that the request names for it. */
  async #loadBalances(wallets: readonly WalletWithCoins[]): Promise<(Balance | Error)[]> {
    const balances = new Map<string, BalanceWith | Error>();
    const accounts: WalletWithCoins[] = [];
    for (const [address, same] of Map.groupBy(wallets, ({ account }) => account.address)) {
      const mergedWallet = withAllCoins(same);
      if (mergedWallet instanceof Error) balances.set(address, mergedWallet);
      else accounts.push(mergedWallet);
    }
    this.reads.chain += accounts.length;
    const read = await this.#sources.balances.getBalances(accounts, this.#caller).catch(toError);
    accounts.forEach(({ account: { address } }, i) => {
      const result = read instanceof Error ? read : (read[i] ?? noAnswer(address));
      balances.set(address, result instanceof Error ? toLookupContractError(result) : result);
    });
    return wallets.map(({ account: { address }, coins }) => {
      const result = balances.get(address) ?? noAnswer(address);
      return result instanceof Error ? result : result(coins);
    });
  }
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

/**
 * Merges the coins of several entries for one account. Returns INVALID_MINT if there are too many.
 */
function withAllCoins([first, ...others]: readonly WalletWithCoins[]): WalletWithCoins | Error {
  const { account, coins } = first!;
  if (others.length === 0) return first!;
  try {
    return { account, coins: allCoins([coins, ...others.map((other) => other.coins)]) };
  } catch (error) {
    return toError(error);
  }
}

const noAnswer = (key: string) => new Error(`no answer for ${key}`);

const READY = Promise.resolve();

/**
 * Runs `next` after `ready` and all promise callbacks that follow it. DataLoader schedules batches
 * in the same way.
 */
function onNextTick(next: () => void, ready: Promise<unknown> = READY): void {
  void ready.then(() => {
    process.nextTick(next);
  });
}

function toLoaded(account: SocialAccount | Error): SocialAccount | Error {
  return account instanceof Error ? fromSocial(account) : account;
}

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
  /** The accounts that the request has found, by id: the network charges for each account. */
  readonly #accounts: Map<string, SocialAccount>;
  readonly #lookups = new Map<string, Promise<SocialAccount>>();
  readonly #byHandle = new DataLoader<string, SocialAccount>(
    (handles) => this.#loadByHandles(handles),
    { cacheMap: this.#lookups },
  );
  readonly #byId = new DataLoader<string, SocialAccount>((ids) => this.#loadByIds(ids));
  readonly #balances = new DataLoader<WalletWithCoins, Balance, string>(
    (wallets) => this.#loadBalances(wallets),
    {
      cacheKeyFn: identityOf,
      batchScheduleFn: (dispatch) => {
        onNextTick(() => {
          // A handle that is still being looked up may lead to the same account, with other coins.
          onNextTick(dispatch, Promise.allSettled(this.#lookups.values()));
        });
      },
    },
  );

  constructor(sources: LoaderSources, caller: Caller, accounts = new Map<string, SocialAccount>()) {
    this.#sources = sources;
    this.#caller = caller;
    this.#accounts = accounts;
  }

  /** The account of a case-insensitive handle. */
  accountByHandle(handle: string): Promise<SocialAccount> {
    return this.#byHandle.load(handle.toLowerCase());
  }

  /** The account of a canonical id. */
  accountById(id: string): Promise<SocialAccount> {
    return this.#byId.load(id);
  }

  balance(wallet: WalletWithCoins): Promise<Balance> {
    return this.#balances.load(wallet);
  }

  /** Call when a balance may have changed: the next load of each balance reads the chain again. */
  clearBalances(): void {
    this.#balances.clearAll();
  }

  /** Stores a balance that has just been read, for later loads. */
  setBalance(wallet: WalletWithCoins, balance: Balance): void {
    this.#balances.prime(wallet, balance);
  }

  /** Loaders for a stream's next event. Keeps the accounts. */
  renew(): Loaders {
    return new Loaders(this.#sources, this.#caller, this.#accounts);
  }

  async #loadByHandles(handles: readonly string[]): Promise<(SocialAccount | Error)[]> {
    const { accountLookup } = this.#sources;
    this.#count(handles, accountLookup.cached);
    return this.#keep(await accountLookup.findByHandles(handles, this.#caller));
  }

  /** Waits for this request's lookups by handle: one of them may find the same account. */
  async #loadByIds(ids: readonly string[]): Promise<(SocialAccount | Error)[]> {
    const { accountLookup } = this.#sources;
    const startedAt = monotonicNow();
    await Promise.allSettled(this.#lookups.values());
    const missing = ids.filter((id) => !this.#accounts.has(id));
    this.#count(missing, accountLookup.cachedById);
    const found = this.#keep(await accountLookup.findByIds(missing, this.#caller, startedAt));
    return ids.map((id) => this.#accounts.get(id) ?? found[missing.indexOf(id)]!);
  }

  #count(keys: readonly string[], cached: (key: string) => unknown): void {
    const cachedCount = keys.filter((key) => cached(key)).length;
    this.reads.cached += cachedCount;
    this.reads.social += keys.length - cachedCount;
  }

  #keep(answers: readonly (SocialAccount | Error)[]): (SocialAccount | Error)[] {
    return answers.map((answer) => {
      if (answer instanceof Error) return fromSocial(answer);
      this.#accounts.set(answer.id, answer);
      return answer;
    });
  }

  /** Reads each account once, with all coins that the request names for it. */
  async #loadBalances(wallets: readonly WalletWithCoins[]): Promise<(Balance | Error)[]> {
    const balances = new Map<string, BalanceWith | Error>();
    const accounts: WalletWithCoins[] = [];
    for (const [address, same] of Map.groupBy(wallets, ({ account }) => account.address)) {
      try {
        accounts.push({ ...same[0]!, coins: allCoins(same.map(({ coins }) => coins)) });
      } catch (error) {
        balances.set(address, toError(error));
      }
    }
    this.reads.chain += accounts.length;
    const read = await this.#sources.balances.getBalances(accounts, this.#caller).catch(toError);
    accounts.forEach(({ account: { address } }, i) => {
      const result = read instanceof Error ? read : read[i]!;
      balances.set(address, result instanceof Error ? toLookupContractError(result) : result);
    });
    return wallets.map(({ account: { address }, coins }) => {
      const result = balances.get(address)!;
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

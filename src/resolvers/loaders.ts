import DataLoader from "dataloader";
import type { AccountAddresses } from "../chain/addresses.ts";
import type { Balance, Balances } from "../chain/balances.ts";
import { toContractError as fromChain } from "../chain/to-contract-error.ts";
import type { AccountLookup } from "../social/account-lookup.ts";
import type { SocialAccount } from "../social/account.ts";
import { toContractError as fromSocial } from "../social/to-contract-error.ts";

/** How many accounts a request has read: from this process's cache, from the network, and from the chain. */
export interface Reads {
  cached: number;
  social: number;
  chain: number;
}

/** What loaders read from. */
export interface LoaderSources {
  readonly accountLookup: Pick<AccountLookup, "cached" | "findByHandles" | "findByIds">;
  readonly balances: Pick<Balances, "getBalances">;
}

/**
 * The loaders of one request, which give it a consistent view of accounts and balances: each is read once per
 * request, even if fields load it on different ticks. Fields that load on the same tick share one batch, and
 * the process-wide batchers merge the batches of all requests. When the caller disconnects, its pending reads
 * are dropped.
 *
 * Every method fails with ContractError.
 */
export class Loaders {
  readonly reads: Reads = { cached: 0, social: 0, chain: 0 };
  readonly #sources: LoaderSources;
  readonly #caller: { readonly signal: AbortSignal };
  /** Hits in the process's cache, kept because the cache can change during the request. */
  readonly #cachedByHandle = new Map<string, SocialAccount | Error>();
  readonly #loadsByHandle = new Map<string, Promise<SocialAccount>>();
  /** The accounts that this request has found. */
  readonly #foundById = new Map<string, SocialAccount>();
  // Created when first needed: most requests need one or two.
  #accountByHandle: DataLoader<string, SocialAccount> | undefined;
  #accountById: DataLoader<string, SocialAccount> | undefined;
  #balance: DataLoader<AccountAddresses, Balance, string> | undefined;

  /** `caller.signal` is created on first use, so only loads that wait may read it. */
  constructor(sources: LoaderSources, caller: { readonly signal: AbortSignal }) {
    this.#sources = sources;
    this.#caller = caller;
  }

  /** The account of a case-insensitive handle; not a promise if it is cached. */
  accountByHandle(text: string): SocialAccount | Promise<SocialAccount> {
    const handle = text.toLowerCase();
    const load = this.#loadsByHandle.get(handle);
    if (load) return load;
    const cached = this.#cachedByHandle.get(handle) ?? this.#takeFromCache(handle);
    if (cached instanceof Error) throw cached;
    if (cached) return cached;
    this.#accountByHandle ??= new DataLoader((handles) => this.#loadByHandles(handles), {
      cacheMap: this.#loadsByHandle,
    });
    return this.#accountByHandle.load(handle);
  }

  /** The account of a canonical id. Reuses an account that this request has found by handle. */
  accountById(id: string): Promise<SocialAccount> {
    this.#accountById ??= new DataLoader((ids) => this.#loadByIds(ids));
    return this.#accountById.load(id);
  }

  /** The balance of an account, read from the chain. */
  balance(addresses: AccountAddresses): Promise<Balance> {
    this.#balance ??= new DataLoader((accounts) => this.#loadBalances(accounts), {
      cacheKeyFn: ({ address }) => address,
    });
    return this.#balance.load(addresses);
  }

  #takeFromCache(handle: string): SocialAccount | Error | undefined {
    const cached = this.#sources.accountLookup.cached(handle);
    if (!cached) return undefined;
    this.reads.cached++;
    const account = this.#remember(cached);
    this.#cachedByHandle.set(handle, account);
    return account;
  }

  #remember(account: SocialAccount | Error): SocialAccount | Error {
    if (account instanceof Error) return fromSocial(account);
    this.#foundById.set(account.id, account);
    return account;
  }

  async #loadByHandles(handles: readonly string[]): Promise<(SocialAccount | Error)[]> {
    this.reads.social += handles.length;
    const accounts = await this.#sources.accountLookup.findByHandles(handles, this.#caller.signal);
    return accounts.map((account) => this.#remember(account));
  }

  /** Waits for this request's lookups by handle first, because one of them may find the same account. */
  async #loadByIds(ids: readonly string[]): Promise<(SocialAccount | Error)[]> {
    const startedAt = performance.now();
    await Promise.allSettled(this.#loadsByHandle.values());
    const missing = ids.filter((id) => !this.#foundById.has(id));
    this.reads.cached += ids.length - missing.length;
    this.reads.social += missing.length;
    const { accountLookup } = this.#sources;
    const loaded =
      missing.length > 0 ? await accountLookup.findByIds(missing, this.#caller.signal, startedAt) : [];
    for (const account of loaded) this.#remember(account);
    const byId = new Map(missing.map((id, i) => [id, loaded[i]!]));
    return ids.map((id) => {
      const account = this.#foundById.get(id) ?? byId.get(id)!;
      return account instanceof Error ? fromSocial(account) : account;
    });
  }

  async #loadBalances(accounts: readonly AccountAddresses[]): Promise<(Balance | Error)[]> {
    this.reads.chain += accounts.length;
    const balances = await this.#sources.balances
      .getBalances(accounts, this.#caller.signal)
      .catch((error: unknown) => accounts.map(() => error as Error));
    return balances.map((balance) =>
      balance instanceof Error ? fromChain(balance, "LOOKUP_FAILED") : balance,
    );
  }
}

import { GraphQLError } from "graphql";
import type { AddressesOf, DerivedAddresses } from "../chain/launchpad/account-addresses.ts";
import type { Balance, BalanceWith } from "../chain/balances/balances.ts";
import type { CollectAnswer, Collector, Failed } from "../chain/collect/collector.ts";
import type { LeftFees } from "../chain/units/units.ts";
import type { LastCollect } from "../chain/collect/claims.ts";
import type { History, HistoryPage } from "../chain/history/history.ts";
import { formatSol, toLamports, type Lamports } from "../chain/primitives/lamports.ts";
import { coinAddressesOf, type CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import type { LiveBalances } from "../chain/live/live-balances.ts";
import { mayHaveMoved } from "../chain/errors/collect-error.ts";
import { toCollectContractError } from "../chain/errors/to-contract-error.ts";
import { isBase58 } from "../contract/base58.ts";
import { cut, quote, type ContractError } from "../contract/contract-error.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { toMinimum } from "../contract/minimum.ts";
import { toMints } from "../contract/mint.ts";
import { invalidSocialId, toSocialId, wrongAddress } from "../contract/social-id.ts";
import type { SocialAccount } from "../social/account.ts";
import { allCoins } from "./loaders.ts";
import type { RequestScope } from "./request-scope.ts";

/** An account and its addresses. */
export interface Wallet {
  readonly socialId: string;
  /** Set if the wallet was found by handle. */
  readonly account: SocialAccount | undefined;
  readonly addresses: DerivedAddresses;
  /** Set in an event of a stream: the balance with coins of the operation. */
  readonly balanceWith?: BalanceWith;
}

/** The mints that a field names, in base58; absent or null: none. */
export type Mints = readonly string[] | null | undefined;

/** An account to collect. `minimum`: in SOL; absent or null: none. */
interface CollectEntry {
  readonly socialId: string;
  readonly mints?: Mints;
  readonly minimum?: string | null | undefined;
  /** The address that the caller expects; absent or null: any. */
  readonly address?: string | null | undefined;
}

/** The members of a transaction's result are undefined if there was nothing to collect. */
export interface CollectResult extends Partial<Omit<LastCollect, "at">> {
  readonly kind: "collected" | "nothing";
  readonly belowMinimum?: Lamports | undefined;
  readonly missing?: Lamports | undefined;
  readonly lastCollects: readonly LastCollect[];
  readonly left: readonly LeftFees[];
  readonly wallet: Wallet;
  readonly named: readonly CoinAddresses[];
}

export type UseCases = ReturnType<typeof createUseCases>;

/** GraphQL's context: the use cases, and the request that they run for. */
export interface Context {
  readonly useCases: UseCases;
  readonly scope: RequestScope;
}

const SIGNATURE_BYTES = 64;

/**
 * What the schema's fields call. Names the codes that callers see: `scope.toCallerError` converts
 * the errors of upstreams. `readHistory` also fails with GraphQLError BAD_REQUEST.
 */
export function createUseCases(needs: {
  handleFormat: HandleFormat;
  addressesOf: AddressesOf;
  collector: Collector;
  history: History;
  live: LiveBalances;
}) {
  const { handleFormat, addressesOf, collector, history, live } = needs;

  const toWallet = (socialId: string, account?: SocialAccount): Wallet => ({
    socialId,
    account,
    addresses: addressesOf(socialId),
  });

  /** Returns the coins with these mints, without repeats. Throws INVALID_MINT. */
  const namedCoins = (mints: Mints) => toMints(mints ?? []).map(coinAddressesOf);

  /**
   * Returns the wallet of an id. Reads nothing: addresses are derived from the id. Throws
   * INVALID_SOCIAL_ID.
   */
  function walletById(text: string): Wallet {
    const socialId = toSocialId(text);
    if (socialId === undefined) throw invalidSocialId(text);
    return toWallet(socialId);
  }

  /**
   * Moves an account's fees from its vaults, and from the coins with these mints, to its address.
   * Any caller may do so; the service pays. Rejects with INVALID_SOCIAL_ID, INVALID_MINT,
   * INVALID_MINIMUM, INSUFFICIENT_FUNDS or COLLECT_FAILED; each says what moved.
   */
  async function collectFees(
    { socialId, mints, minimum: least, address }: CollectEntry,
    scope: RequestScope,
  ): Promise<CollectResult> {
    const { addressBlock, visitorBlock, startedAt, loaders, log } = scope;
    try {
      const wallet = walletById(socialId);
      const { addresses: account } = wallet;
      if (typeof address === "string" && address !== account.address)
        throw wrongAddress(wallet.socialId, address);
      const named = namedCoins(mints);
      const request = { account, coins: named, minimum: toLamports(toMinimum(least ?? "0")) };
      // Not the scope, which a transaction in flight would keep for longer than the request.
      const caller = { addressBlock, visitorBlock };
      const outcome = await collector.collect(request, caller, startedAt, log);
      const isFailed = outcome.kind === "failed";
      if (isFailed ? mayHaveMoved(outcome.error) : outcome.kind === "collected")
        live.refresh(account);
      if (isFailed) throw toContractError(outcome);
      return { ...outcome, left: outcome.left ?? [], wallet, named };
    } catch (error) {
      throw toCollectContractError(error);
    } finally {
      loaders.clear();
    }
  }

  return {
    walletById,

    /**
     * Finds the wallet of a case-insensitive handle. Reads the social network, never the chain.
     * Rejects with INVALID_HANDLE, SOCIAL_NOT_FOUND, SOCIAL_RATE_LIMITED,
     * SOCIAL_API_UNAVAILABLE or SERVICE_BUSY.
     */
    async lookUpWallet(handle: string, { loaders }: RequestScope): Promise<Wallet> {
      if (!handleFormat.pattern.test(handle)) throw invalidHandle(handleFormat, quote(handle));
      const account = await loaders.accountByHandle(handle);
      return toWallet(account.id, account);
    },

    /**
     * Returns a wallet's balance with the coins of these mints. Fails with INVALID_MINT or
     * LOOKUP_FAILED.
     */
    async readBalance(
      { addresses, balanceWith }: Wallet,
      mints: Mints,
      { loaders }: RequestScope,
    ): Promise<Balance> {
      const coins = namedCoins(mints);
      return balanceWith?.(coins) ?? loaders.balance({ account: addresses, coins });
    },

    /**
     * Returns a wallet's account, read from the social network if the wallet was found by id. Fails
     * with SOCIAL_NOT_FOUND, SOCIAL_RATE_LIMITED, SOCIAL_API_UNAVAILABLE or SERVICE_BUSY.
     */
    readAccount: async (
      { account, socialId }: Wallet,
      { loaders }: RequestScope,
    ): Promise<SocialAccount> => account ?? loaders.accountById(socialId),

    /**
     * Reads transfers, newest first. Rejects with LOOKUP_FAILED, SERVICE_BUSY or BAD_REQUEST (an
     * invalid page).
     */
    async readHistory(
      { addresses }: Wallet,
      page: { first: number; after: string | undefined },
      scope: RequestScope,
    ): Promise<HistoryPage> {
      if (page.first < 1) throw new GraphQLError("`first` must be at least 1.");
      const isPossible = page.after === undefined || isBase58(page.after, SIGNATURE_BYTES);
      const foundPage = isPossible && (await history.readPage(addresses, page, scope));
      if (!foundPage)
        throw new GraphQLError("`after` must be the `endCursor` or a `cursor` of an earlier page.");
      return foundPage;
    },

    /**
     * Returns the mints of coins that were swept or distributed lately. Rejects with LOOKUP_FAILED
     * or SERVICE_BUSY.
     */
    readCoinsSeen: ({ addresses }: Wallet, scope: RequestScope): Promise<string[]> =>
      history.readCoinsSeen(addresses, scope),

    collectFees,

    /**
     * Collects for many entries at the same time. Entries of one account that one transaction
     * serves have its amounts once, so that a caller can add up all results. Each promise fails as
     * `collectFees` does, with the entry's id in the error's extensions.
     */
    collectMany(entries: readonly CollectEntry[], scope: RequestScope): Promise<CollectResult>[] {
      const results = entries.map((entry) =>
        resolveItem("socialId", entry.socialId, () => collectFees(entry, scope), scope),
      );
      const outcomes = Promise.allSettled(results);
      return results.map(async (result, i) => {
        const earlier = (await outcomes).slice(0, i);
        const values = earlier.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
        return countOnce(await result, values);
      });
    },

    /**
     * Watches wallets and the coins that the fields name. Yields each wallet at once, then each time
     * an amount changes. Ends with the request's stream. Rejects with RATE_LIMITED,
     * SERVICE_BUSY, INVALID_MINT or the error of a `find`.
     */
    async watchWallets(
      finds: readonly (() => Wallet | Promise<Wallet>)[],
      mintsOfFields: readonly Mints[],
      scope: RequestScope,
    ): Promise<AsyncIterable<Wallet>> {
      const stream = scope.openStream(finds.length);
      try {
        const coins = allCoins(mintsOfFields.map(namedCoins));
        const foundWallets = await Promise.all(finds.map(async (find) => find()));
        const byAddress = new Map(foundWallets.map((each) => [each.addresses.address, each]));
        const wallets = [...byAddress.values()].map(({ addresses: account }) => ({
          account,
          coins,
        }));
        const watcher = { addressBlock: scope.addressBlock, signal: stream.signal };
        const readings = live.watch(wallets, watcher);
        return (async function* () {
          for await (const { account, balanceWith } of readings) {
            // Each event looks up again what the last one could not find.
            scope.loaders.clear();
            yield { ...byAddress.get(account.address)!, balanceWith };
          }
        })();
      } catch (error) {
        stream.close();
        throw error;
      }
    },
  };
}

/** Adds the entry `text` of a list to the error of its result. */
export async function resolveItem<T>(
  name: "handle" | "socialId",
  text: string,
  find: () => T | Promise<T>,
  { toCallerError }: RequestScope,
): Promise<T> {
  try {
    return await find();
  } catch (error) {
    // An answer may have it a hundred times.
    throw toCallerError(error).with({ [name]: cut(text) });
  }
}

/** Says what was left, unless a transaction may have moved it, and the account's last collects. */
function toContractError({ error, left, lastCollects }: CollectAnswer<Failed>): ContractError {
  const failure = toCollectContractError(error);
  return failure.with({
    ...(left && failure.extensions?.moved === "no" && { left: left.map(toLeftJson) }),
    lastCollects: lastCollects.map(toLastCollectJson),
  });
}

const toLeftJson = ({ mint, amount, reason }: LeftFees) => ({
  mint: mint ?? null,
  amount: amount === undefined ? null : formatSol(amount),
  lamports: amount?.toString() ?? null,
  reason,
});

const toLastCollectJson = ({ collected, newBalance, signature, at }: LastCollect) => ({
  collected: formatSol(collected),
  collectedLamports: String(collected),
  newBalance: formatSol(newBalance),
  newBalanceLamports: String(newBalance),
  txSignature: signature,
  at: at.toISOString(),
});

/**
 * Leaves the amounts of an account's part in a transaction only in the first result that has them:
 * a later one keeps only what is left on coins that no earlier one names.
 */
function countOnce(result: CollectResult, earlier: readonly CollectResult[]): CollectResult {
  const { signature, wallet, left } = result;
  const same = earlier.filter(
    (each) => each.signature === signature && each.wallet.socialId === wallet.socialId,
  );
  if (signature === undefined || same.length === 0) return result;
  const mints = new Set(same.flatMap(({ named }) => named.map(({ mint }) => mint)));
  const isNew = ({ mint }: LeftFees) => mint !== undefined && !mints.has(mint);
  return { ...result, collected: toLamports(0), left: left.filter(isNew) };
}

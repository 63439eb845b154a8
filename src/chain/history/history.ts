import type { Caller } from "../../fairness/caller.ts";
import { equalParts, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { createLruCache, describeCache } from "../../store/lru-cache.ts";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import { poolOf } from "../launchpad/coin-addresses.ts";
import { decodePoolMints, POOL_MINTS_BYTES } from "../launchpad/fee-accounts.ts";
import type { Floors } from "../balances/floors.ts";
import { MAX_KEYS_PER_CALL } from "../rpc/read-accounts.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { listTransactions, type ListedTransaction } from "./list-transactions.ts";
import { effectOf, NO_EFFECT, type Effect, type SweptCoins, type Transfer } from "./effect.ts";

/** A transfer, with the mints of the coins that its transaction swept or distributed. */
export interface TransferWithMints extends Transfer {
  readonly mints: readonly string[];
}

/** A page of an account's history, newest first. */
export interface HistoryPage {
  readonly transfers: readonly TransferWithMints[];
  /** The signature of the last transaction looked at; if there was none, the page's `after`. */
  readonly endCursor: string | undefined;
  /** Whether there are older transactions. They may contain no transfer. */
  readonly hasNextPage: boolean;
}

/**
 * A page looks at up to this many transactions, or up to the requested number of transfers if that
 * is higher. Anyone can send dust: a lower limit would leave small pages empty. A higher limit
 * would make pages expensive.
 */
export const MIN_LOOKED_AT = 30;
/** How many transactions of a page are read at once. */
const READ_AT_ONCE = 10;
/** An entry takes about 400 bytes; with the most coins that a transaction can name, 6 kB. */
const MAX_CACHED = 10_000;
/** The most coins that {@link History.readCoinsSeen} returns: strangers can launch any number. */
const MAX_COINS_SEEN = 100;
/** A node may list transactions that it cannot return yet. */
const READ_MS = 1_000;

export type History = ReturnType<typeof createHistory>;

/**
 * Reads accounts' transfers and coins from the chain, which is the only ledger. Caches the effects
 * of finalized transactions, because these never change. The calls belong to the reader.
 */
export function createHistory(needs: {
  rpc: Pick<Rpc, "call" | "callEndpoint" | "readTransaction" | "readLanded" | "readAccounts">;
  floors: Pick<Floors, "landedSlotOf">;
  /** Runs code whose calls to the chain belong to an owner. */
  ownCalls: ChainCallPlan["own"];
}) {
  const { rpc, floors, ownCalls } = needs;
  /** By signature and address. */
  const cache = createLruCache<string, Effect>(MAX_CACHED);
  /** The mint of each pool's coin, which never changes. An entry takes about 250 bytes. */
  const poolMints = createLruCache<string, string>(MAX_CACHED);

  /** Runs code whose calls to the chain belong to the reader. */
  function own<T>({ addressBlock, signal }: Caller, run: () => Promise<T>): Promise<T> {
    return ownCalls({ use: "histories", parts: equalParts([addressBlock]), signal }, run);
  }

  /** Reads what a listed transaction did to the account. */
  async function readEffect(
    account: AccountAddresses,
    { signature, err }: ListedTransaction,
    { signal }: Caller,
  ): Promise<Effect> {
    if (err !== null) return NO_EFFECT;
    const key = `${signature} ${account.address}`;
    const cachedEffect = cache.get(key);
    if (cachedEffect) return cachedEffect;
    const transaction = await rpc.readLanded(signature, [], READ_MS, signal);
    const effect = effectOf(transaction, signature, account);
    cache.set(key, effect);
    return effect;
  }

  /**
   * Returns the mints of each of these lists of coins, each mint once. Reads as many pools as fit
   * into one call, the first ones: only someone who makes many pools needs more.
   */
  async function readMints(lists: readonly SweptCoins[]): Promise<string[][]> {
    const pools = new Set(lists.flatMap((list) => list.pools));
    const unread = [...pools].filter((pool) => !poolMints.has(pool)).slice(0, MAX_KEYS_PER_CALL);
    if (unread.length > 0)
      await rpc.readAccounts({
        groups: unread.map((pool) => [pool]),
        bytes: POOL_MINTS_BYTES,
        take(i, { accounts: [account] }) {
          const pool = unread[i]!;
          const named = decodePoolMints(account);
          // The derivation proves the coin, whatever the account says.
          if (named && poolOf(named.mint, named.quoteMint) === pool)
            poolMints.set(pool, named.mint);
          return true;
        },
      });
    return lists.map((list) => [
      ...new Set([...list.mints, ...list.pools.flatMap((pool) => poolMints.get(pool) ?? [])]),
    ]);
  }

  return {
    describeCache: () => describeCache(cache),

    /**
     * Returns up to `first` transfers older than the transaction `after`. Looks at up to {@link
     * MIN_LOOKED_AT} or `first` transactions, whichever is more. So a page may have fewer
     * transfers, or none, without being the last. Returns undefined if no endpoint knows `after`.
     * Throws {@link RpcError}.
     */
    readPage: (
      account: AccountAddresses,
      { first, after }: { first: number; after: string | undefined },
      reader: Caller,
    ): Promise<HistoryPage | undefined> =>
      own(reader, async () => {
        const { address } = account;
        const minSlot = floors.landedSlotOf(address);
        const maxLookedAt = Math.max(MIN_LOOKED_AT, first);
        // List one transaction more than the page looks at, to learn whether there are older ones.
        const limit = maxLookedAt + 1;
        const list = await listTransactions(rpc, address, { before: after, limit, minSlot });
        if (!list) return undefined;
        const shown: { transfer: Transfer; coins: SweptCoins }[] = [];
        let lookedAtCount = 0;
        const end = Math.min(list.length, maxLookedAt);
        while (shown.length < first && lookedAtCount < end) {
          const effects = await Promise.all(
            list
              .slice(lookedAtCount, Math.min(lookedAtCount + READ_AT_ONCE, end))
              .map((listing) => readEffect(account, listing, reader)),
          );
          for (const { transfer, coins } of effects) {
            if (shown.length === first) break;
            if (transfer) shown.push({ transfer, coins });
            lookedAtCount++;
          }
        }
        const mints = await readMints(shown.map(({ coins }) => coins));
        return {
          transfers: shown.map(({ transfer }, i) => ({ ...transfer, mints: mints[i]! })),
          endCursor: list[lookedAtCount - 1]?.signature ?? after,
          hasNextPage: lookedAtCount < list.length,
        };
      }),

    /**
     * Returns the mints of the coins that the last {@link MIN_LOOKED_AT} transactions of the
     * account's creator vault and of its address swept or distributed, the last ones first.
     * Throws as `readPage`.
     */
    readCoinsSeen: (account: AccountAddresses, reader: Caller): Promise<string[]> =>
      own(reader, async () => {
        const options = { limit: MIN_LOOKED_AT, minSlot: floors.landedSlotOf(account.address) };
        const lists = await Promise.all(
          [account.creatorVault, account.address].map(
            async (address) => (await listTransactions(rpc, address, options)) ?? [],
          ),
        );
        // A collect names both addresses.
        const bySignature = new Map(lists.flat().map((each) => [each.signature, each]));
        const newestFirst = [...bySignature.values()].sort((a, b) => b.slot - a.slot);
        const effects = await Promise.all(
          newestFirst.map((listing) => readEffect(account, listing, reader)),
        );
        const mints = await readMints(effects.map(({ coins }) => coins));
        return [...new Set(mints.flat())].slice(0, MAX_COINS_SEEN);
      }),
  };
}

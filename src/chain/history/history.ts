import { setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "../../fairness/caller.ts";
import type { ChainPlan } from "../../fairness/chain-plan.ts";
import { createLruCache } from "../../store/lru-cache.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { Floors } from "../slots/stale-balances.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { RpcError } from "../rpc/rpc-error.ts";
import type { ListedTransaction } from "../rpc/transactions.ts";
import { toTransfer, type Transfer } from "./transfer.ts";

/** A page of an account's history, newest first. */
export interface HistoryPage {
  readonly transfers: readonly Transfer[];
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
/**
 * The results of at most this many transactions are cached. An entry takes about 400 bytes.
 */
const MAX_CACHED = 50_000;
/**
 * How many times to try to read a transaction: a node may list transactions that it cannot return
 * yet.
 */
const READS = 3;
const REREAD_MS = 400;

export type History = ReturnType<typeof createHistory>;

/**
 * Reads accounts' transfers from the chain, which is the only ledger. Caches transfers of finalized
 * transactions, because these never change, unless only one of several endpoints has them. The calls
 * belong to the reader.
 */
export function createHistory(needs: {
  rpc: Pick<Rpc, "listTransactions" | "readTransaction">;
  floors: Pick<Floors, "landedSlotOf">;
  /** Runs code whose calls to the chain belong to an owner. */
  ownCalls: ChainPlan["own"];
  /** Tests pass a shorter wait. */
  rereadMs?: number | undefined;
}) {
  const { rpc, floors, ownCalls, rereadMs = REREAD_MS } = needs;
  /** By signature and address. */
  const cache = createLruCache<string, { readonly transfer: Transfer | undefined }>(MAX_CACHED);

  return {
    /**
     * Returns up to `first` transfers older than the transaction `after`. Looks at up to {@link
     * MIN_LOOKED_AT} or `first` transactions, whichever is more. So a page may have fewer
     * transfers, or none, without being the last. Returns undefined if no endpoint knows `after`.
     * Throws {@link RpcError}.
     */
    async readPage(
      account: AccountAddresses,
      { first, after }: { first: number; after: string | undefined },
      reader: Caller,
    ): Promise<HistoryPage | undefined> {
      const { address } = account;
      const maxLookedAt = Math.max(MIN_LOOKED_AT, first);

      const { addressBlock, signal } = reader;
      const own = <T>(run: () => Promise<T>) =>
        ownCalls({ use: "histories", parts: new Map([[addressBlock, 1]]), signal }, 1, run);

      async function readTransfer(listed: ListedTransaction) {
        const { signature, hasFailed, onlyAt } = listed;
        if (hasFailed) return undefined;
        const key = `${signature} ${address}`;
        const cached = cache.get(key);
        if (cached) return cached.transfer;
        for (let readsLeft = READS; readsLeft > 0; readsLeft--) {
          signal.throwIfAborted();
          const found = await own(() => rpc.readTransaction(listed, address));
          if (found) {
            const transfer = toTransfer(found.transaction, signature, account);
            if (found.isCertain) cache.set(key, { transfer });
            return transfer;
          }
          // One endpoint could invent signatures: they cost one read each, and fail nothing.
          if (onlyAt) return undefined;
          if (readsLeft > 1) await sleep(rereadMs);
        }
        throw new RpcError("unreadable", "getTransaction", "every endpoint");
      }

      // List one transaction more than the page looks at, to learn whether there are older ones.
      const limit = maxLookedAt + 1;
      const minSlot = floors.landedSlotOf(address);
      const list = await own(() =>
        rpc.listTransactions(address, { before: after, limit, minSlot }),
      );
      if (!list) return undefined;
      const page: Transfer[] = [];
      let looked = 0;
      const end = Math.min(list.length, maxLookedAt);
      while (page.length < first && looked < end) {
        const found = await Promise.all(
          list.slice(looked, Math.min(looked + READ_AT_ONCE, end)).map(readTransfer),
        );
        for (const transfer of found) {
          if (page.length === first) break;
          if (transfer) page.push(transfer);
          looked++;
        }
      }
      return {
        transfers: page,
        endCursor: list[looked - 1]?.signature ?? after,
        hasNextPage: looked < list.length,
      };
    },
  };
}

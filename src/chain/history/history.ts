import { ContractError } from "../../contract/contract-error.ts";
import { createLruCache } from "../../store/lru-cache.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { BudgetMetrics } from "../../fairness/budget-metrics.ts";
import { createBudget } from "../../fairness/budget.ts";
import type { Caller } from "../../fairness/caller.ts";
import { createSemaphore } from "../../fairness/semaphore.ts";
import type { Redis } from "../../store/redis.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { Floors } from "../slots/stale-balances.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { RpcError } from "../rpc/rpc-error.ts";
import type { ListedTransaction } from "../rpc/transactions.ts";
import { budgetRefusal } from "../budget-refusal.ts";
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
/**
 * At least this many reads of transactions are queued together, so that dust is not read one by
 * one.
 */
const MIN_READ_AT_ONCE = 10;
/**
 * The results of at most this many transactions are cached. An entry takes about 400 bytes.
 */
const MAX_CACHED = 50_000;
/** Fractions of the hourly calls, as in {@link createBudget}. */
const SHARES = { all: 1, block: 1 / 8, wideBlock: 1 / 4, trusted: 1 / 2 };
/** The calls of two pages, each with a list of two endpoints. */
const FEW_CALLS = 2 * (2 + MIN_LOOKED_AT);
/**
 * The limits of two queues: one for reads of lists, one for reads of transactions. Providers allow
 * about ten calls a second. A full queue takes about 25 s at 0.2 s per call; address blocks take
 * turns. Further reads are refused.
 */
const IN_TURN = {
  maxRunning: 8,
  maxWaiting: 1_000,
  refuse: () =>
    new ContractError("SERVICE_BUSY", {
      message: "Too many histories are being read. Try again in 30 seconds.",
    }),
};
/**
 * How many times to try to read a transaction: a node may list transactions that it cannot return
 * yet.
 */
const READS = 3;
const REREAD_MS = 400;

export type History = ReturnType<typeof createHistory>;

/**
 * Reads accounts' transfers from the chain, which is the only ledger. Caches transfers of finalized
 * transactions, because these never change, unless only one of several endpoints returns them. All
 * histories together make at most `historyCallsPerHour` calls in any hour, over all replicas while
 * Redis is up. An address block may use an eighth of the calls, and all trusted callers together
 * half. A read of a list counts once for each endpoint that is asked. A read of a transaction, at
 * two endpoints, counts once: each provider has its own limit.
 */
export function createHistory(needs: {
  rpc: Pick<Rpc, "listTransactions" | "readTransaction">;
  floors: Pick<Floors, "landedSlotOf">;
  historyCallsPerHour: number;
  redis: Redis | undefined;
  metrics: BudgetMetrics;
  /** Tests pass a shorter wait. */
  rereadMs?: number | undefined;
}) {
  const { rpc, floors, historyCallsPerHour, redis, metrics } = needs;
  const { rereadMs = REREAD_MS } = needs;
  /** By signature and address. */
  const cache = createLruCache<string, { readonly transfer: Transfer | undefined }>(MAX_CACHED);
  const addList = createSemaphore<readonly ListedTransaction[] | undefined>(IN_TURN);
  const addTransaction = createSemaphore<Transfer | undefined>(IN_TURN);
  const budget = createBudget({
    name: "history",
    limit: historyCallsPerHour,
    pool: { name: "all", ...SHARES, largest: FEW_CALLS },
    tiers: [{ first: FEW_CALLS, mayUse: 1 }],
    redis,
  });
  metrics.watch("history_calls", budget.usedRatio);

  /** Takes one call from the budget, for the reader's address block. */
  async function pay({ addressBlock }: Caller) {
    const paid = await budget.take(addressBlock, 1);
    if (!paid.shortage) return paid;
    metrics.refused("history_calls", paid.shortage.scope, 1);
    const { message, extensions } = budgetRefusal(
      paid.shortage,
      "budget of calls for histories",
      "page",
    );
    throw new ContractError("SERVICE_BUSY", { message, extensions });
  }

  return {
    /**
     * Returns up to `first` transfers older than the transaction `after`. Looks at up to {@link
     * MIN_LOOKED_AT} or `first` transactions, whichever is more. So a page may have fewer
     * transfers, or none, without being the last. Returns undefined if no endpoint knows `after`.
     * Throws {@link RpcError}, or ContractError SERVICE_BUSY.
     */
    async readPage(
      account: AccountAddresses,
      { first, after }: { first: number; after: string | undefined },
      reader: Caller,
    ): Promise<HistoryPage | undefined> {
      const { address } = account;
      const maxLookedAt = Math.max(MIN_LOOKED_AT, first);

      async function readList(): Promise<readonly ListedTransaction[] | undefined> {
        const paid = await pay(reader);
        // List one transaction more than the page looks at, to learn whether there are older ones.
        const limit = maxLookedAt + 1;
        const minSlot = floors.landedSlotOf(address);
        const { list, calls } = await rpc.listTransactions(address, {
          before: after,
          limit,
          minSlot,
        });
        paid.giveBack(1 - calls);
        return list;
      }

      async function readTransfer(listed: ListedTransaction) {
        const { signature, hasFailed, isDoubtful } = listed;
        if (hasFailed) return undefined;
        const key = `${signature} ${address}`;
        const cached = cache.get(key);
        if (cached) return cached.transfer;
        const readPaid = async () => {
          for (let readsLeft = READS; readsLeft > 0; readsLeft--) {
            await pay(reader);
            const found = await rpc.readTransaction(signature, address);
            if (found) {
              const transfer = toTransfer(found.transaction, signature, account);
              if (found.isCertain) cache.set(key, { transfer });
              return transfer;
            }
            // One endpoint could invent signatures: they cost one read each, and fail nothing.
            if (isDoubtful) return undefined;
            if (readsLeft > 1) await sleep(rereadMs);
          }
          throw new RpcError("unreadable", "getTransaction", "every endpoint");
        };
        return addTransaction(readPaid).join(reader);
      }

      const list = await addList(readList).join(reader);
      if (!list) return undefined;
      const page: Transfer[] = [];
      let looked = 0;
      const end = Math.min(list.length, maxLookedAt);
      while (page.length < first && looked < end) {
        const atOnce = Math.max(first - page.length, MIN_READ_AT_ONCE);
        const found = await Promise.all(
          list.slice(looked, Math.min(looked + atOnce, end)).map(readTransfer),
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

import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { ContractError } from "../../contract/contract-error.ts";
import { createBatcher } from "../../upstream/batcher.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { ListedTransaction } from "../rpc/address-history.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { RpcError } from "../rpc/rpc-error.ts";
import { toTransfer, type Transfer } from "./transfer.ts";

/** A part of an account's history, newest first. */
export interface HistoryPage {
  readonly transfers: readonly Transfer[];
  /** The signature of the last transaction looked at; if there was none, the page's `after`. */
  readonly endCursor: string | undefined;
  /** Whether there are older transactions. They may hold no transfer. */
  readonly hasNextPage: boolean;
}

/** Who reads a history. */
export interface HistoryReader {
  readonly signal: AbortSignal;
  /** Readers in the same block of IP addresses share one part of the calls. */
  readonly addressBlock: string;
}

/** Enough for the largest page. Strangers can send dust, and it must not make a page cost more. */
const MAX_LOOKED_AT = 100;
/**
 * The fewest transactions read at once for a page. Reading the whole list at once would cost a small page a
 * hundred calls.
 */
const MIN_READ_AT_ONCE = 10;
/**
 * Calls in flight for the lists of all histories, and as many for their transactions. Providers allow about
 * ten calls a second or more.
 */
const MAX_CALLS = 8;
/** The most reads that wait; more are refused. At 0.2 s per call the last one waits about 25 s. */
const MAX_WAITING = 1_000;
/** An entry takes about 400 bytes. */
const MAX_CACHED = 50_000;
/** A node may return a transaction only some time after it lists it. */
const READS = 3;
const REREAD_MS = 400;

export type History = ReturnType<typeof createHistory>;

/**
 * Reads what arrived at accounts' addresses and what left them. The chain is the only ledger: nothing is stored,
 * but finalized transactions never change, so the transfers of the last ones read are cached.
 */
export function createHistory(needs: {
  rpc: Rpc;
  launchpadProgramId: string;
  /** Tests pass a shorter wait. */
  rereadMs?: number;
}) {
  const { rpc, launchpadProgramId, rereadMs = REREAD_MS } = needs;
  /** False: the transaction made no transfer. */
  const cache = new LRUCache<string, Transfer | false>({ max: MAX_CACHED });
  const limits = {
    maxKeys: 1,
    maxCalls: MAX_CALLS,
    maxWaitMs: 0,
    maxWaiting: MAX_WAITING,
    refuse: (reason?: Error) =>
      reason ??
      new ContractError("SERVICE_BUSY", {
        message: "Too many histories are being read. Try again in 30 seconds.",
      }),
  };
  const lists = createBatcher<readonly ListedTransaction[]>({
    ...limits,
    ask: async ([key]) => {
      const [address = "", before] = key!.split(" ");
      // One more than a page looks at shows whether there are older ones.
      const listed = await rpc.listTransactions(address, { before, limit: MAX_LOOKED_AT + 1 });
      return new Map([[key!, listed]]);
    },
  });
  const transfers = createBatcher<Transfer | false>({
    ...limits,
    joinInFlight: true,
    ask: async ([key]) => {
      const [signature = "", address = "", creatorVault = ""] = key!.split(" ");
      const transaction = await readTransaction(signature, address);
      const account = { address, creatorVault };
      return new Map([[key!, toTransfer(transaction, signature, account, launchpadProgramId) ?? false]]);
    },
  });

  async function readTransaction(signature: string, address: string) {
    for (let readsLeft = READS; readsLeft > 0; readsLeft--) {
      const transaction = await rpc.readTransaction(signature, address);
      if (transaction) return transaction;
      if (readsLeft > 1) await sleep(rereadMs);
    }
    throw new RpcError("unreadable", "getTransaction", "every endpoint");
  }

  /** The transfers of some transactions, in order. */
  async function readTransfers(
    { address, creatorVault }: AccountAddresses,
    listed: readonly ListedTransaction[],
    { signal, addressBlock }: HistoryReader,
  ): Promise<(Transfer | false)[]> {
    const toKey = ({ signature }: ListedTransaction) => [signature, address, creatorVault].join(" ");
    const known = listed.map((each) => (each.hasFailed ? false : cache.get(toKey(each))));
    const missing = listed.filter((_, i) => known[i] === undefined);
    const loaded = await transfers.load(missing.map(toKey), signal, { caller: addressBlock });
    missing.forEach((each, i) => {
      const transfer = loaded[i]!;
      if (transfer instanceof Error) throw transfer;
      if (each.isFinalized) cache.set(toKey(each), transfer);
    });
    const found = (loaded as (Transfer | false)[]).values();
    return known.map((transfer) => transfer ?? found.next().value!);
  }

  return {
    /**
     * Up to `first` transfers before the transaction `after`. Looks at no more than 100 transactions, so a page may
     * have fewer transfers, or none, and still not be the last. Throws {@link RpcError}, or ContractError SERVICE_BUSY.
     */
    async readPage(
      account: AccountAddresses,
      { first, after }: { first: number; after: string | undefined },
      reader: HistoryReader,
    ): Promise<HistoryPage> {
      const key = after === undefined ? account.address : `${account.address} ${after}`;
      const request = { caller: reader.addressBlock };
      const [list] = await lists.load([key], reader.signal, request);
      if (!list || list instanceof Error) throw list ?? new Error("a list is missing");

      const page: Transfer[] = [];
      let looked = 0;
      const end = Math.min(list.length, MAX_LOOKED_AT);
      while (page.length < first && looked < end) {
        const atOnce = Math.max(first - page.length, MIN_READ_AT_ONCE);
        const found = await readTransfers(
          account,
          list.slice(looked, Math.min(looked + atOnce, end)),
          reader,
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

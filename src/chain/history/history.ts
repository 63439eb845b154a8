import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { AccountAddresses } from "../addresses.ts";
import type { ListedTransaction } from "../rpc/address-history.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { RpcError } from "../rpc/rpc-error.ts";
import { createSharedReads, type HistoryReader } from "./shared-reads.ts";
import { toTransfer, type Transfer } from "./transfer.ts";

/** A part of an account's history, newest first. */
export interface HistoryPage {
  readonly transfers: readonly Transfer[];
  /** The signature of the last transaction looked at; if there was none, the page's `after`. */
  readonly endCursor: string | undefined;
  /** Whether there are older transactions. They may hold no transfer. */
  readonly hasNextPage: boolean;
}

/** Enough for the largest page. Strangers can send dust, and it must not make a page cost more. */
const MAX_LOOKED_AT = 100;
/**
 * The fewest transactions read at once for a page. Reading the whole list at once would cost a small page a
 * hundred calls.
 */
const MIN_READ_AT_ONCE = 10;
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
  rereadMs?: number | undefined;
}) {
  const { rpc, launchpadProgramId, rereadMs = REREAD_MS } = needs;
  /** False: the transaction made no transfer. */
  const cache = new LRUCache<string, Transfer | false>({ max: MAX_CACHED });
  // A list must be newer than its request, so nobody joins one in flight.
  const shareList = createSharedReads<readonly ListedTransaction[]>({ joinsInFlight: false });
  const shareTransfer = createSharedReads<Transfer | false>({ joinsInFlight: true });

  async function readTransaction(signature: string, address: string) {
    for (let readsLeft = READS; readsLeft > 0; readsLeft--) {
      const transaction = await rpc.readTransaction(signature, address);
      if (transaction) return transaction;
      if (readsLeft > 1) await sleep(rereadMs);
    }
    throw new RpcError("unreadable", "getTransaction", "every endpoint");
  }

  async function readTransfer(
    account: AccountAddresses,
    { signature, hasFailed, isFinalized }: ListedTransaction,
    reader: HistoryReader,
  ): Promise<Transfer | false> {
    if (hasFailed) return false;
    const key = `${signature} ${account.address}`;
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const read = async () => {
      const transaction = await readTransaction(signature, account.address);
      return toTransfer(transaction, signature, account, launchpadProgramId) ?? false;
    };
    const transfer = await shareTransfer(key, read, reader);
    if (isFinalized) cache.set(key, transfer);
    return transfer;
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
      const { address } = account;
      // One more than a page looks at shows whether there are older ones.
      const read = () => rpc.listTransactions(address, { before: after, limit: MAX_LOOKED_AT + 1 });
      const list = await shareList(`${address} ${after}`, read, reader);

      const page: Transfer[] = [];
      let looked = 0;
      const end = Math.min(list.length, MAX_LOOKED_AT);
      while (page.length < first && looked < end) {
        const atOnce = Math.max(first - page.length, MIN_READ_AT_ONCE);
        const next = list.slice(looked, Math.min(looked + atOnce, end));
        const found = await Promise.all(next.map((each) => readTransfer(account, each, reader)));
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

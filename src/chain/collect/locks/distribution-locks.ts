import { setTimeout as sleep } from "node:timers/promises";
import { CollectError } from "../../collect-error.ts";
import type { AccountLocks, Lease, StoredTransaction } from "./account-lock.ts";

interface Holder {
  /** What it has stored; undefined before. */
  readonly transaction: () => StoredTransaction | undefined;
  /** Resolves to that when it releases the lock. */
  readonly released: Promise<StoredTransaction | undefined>;
}

/** Called when a lock must be waited for. Returns the transaction of the holder, if that is known. */
export type OnWait = (transaction: () => StoredTransaction | undefined) => void;

/**
 * Lets one collect at a time distribute the fees that a sharing config's accounts share, also among the collects of this
 * replica: each account has its own collect, and one distribution pays all of them. A collect that finds another one in
 * flight gets a lease with its transaction, once that has an outcome.
 */
export function createDistributionLocks(locks: AccountLocks) {
  /** The collects of this replica that hold a lock, by config. */
  const holders = new Map<string, Holder>();

  return {
    /**
     * Acquires the lock of the sharing config with this address. Throws {@link CollectError} `distribution-in-flight` or
     * `lease-not-acquired` at `endsAt`, a `performance.now()` time, or `stored-transaction-unreadable`.
     */
    async acquire(config: string, endsAt: number, onWait: OnWait = () => undefined): Promise<Lease> {
      for (let holder; (holder = holders.get(config));) {
        onWait(holder.transaction);
        const transaction = await before(endsAt, holder.released);
        if (transaction) return toFollow(transaction);
      }
      const { promise, resolve } = Promise.withResolvers<StoredTransaction | undefined>();
      let sent: StoredTransaction | undefined;
      holders.set(config, { transaction: () => sent, released: promise });
      const free = () => {
        holders.delete(config);
        resolve(sent);
      };
      const lease = await locks
        .acquire(config, endsAt, () => {
          onWait(() => undefined);
        })
        .catch((error: unknown) => {
          free();
          throw error;
        });
      if (lease.openTransaction) {
        free();
        return lease;
      }
      return {
        ...lease,
        store(transaction) {
          sent = transaction;
          return lease.store(transaction);
        },
        release(landedSlot) {
          lease.release(landedSlot);
          free();
        },
      };
    },
  };
}

async function before<T>(endsAt: number, promise: Promise<T>): Promise<T> {
  const timeout = new AbortController();
  const late = sleep(Math.max(0, endsAt - performance.now()), undefined, { signal: timeout.signal }).then(
    () => {
      throw new CollectError({ kind: "distribution-in-flight" });
    },
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    timeout.abort();
    late.catch(() => undefined);
  }
}

/** A lease without the right to sign, of a transaction that has an outcome. */
function toFollow(openTransaction: StoredTransaction): Lease {
  return {
    openTransaction,
    isEarlier: false,
    isInRedis: false,
    landedSlot: 0,
    store: () => Promise.resolve(false),
    withdraw: () => Promise.resolve(false),
    release: () => undefined,
  };
}

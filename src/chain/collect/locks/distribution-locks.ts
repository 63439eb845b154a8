import { setTimeout as sleep } from "node:timers/promises";
import { CollectError } from "../../collect-error.ts";
import type { AccountLocks, Lease, StoredTransaction } from "./account-lock.ts";

/**
 * Lets one collect at a time distribute the fees that a sharing config's accounts share, also among the collects of this
 * replica: each account has its own collect, and one distribution pays all of them. A collect that finds another one in
 * flight gets a lease with its transaction, once that has an outcome.
 */
export function createDistributionLocks(locks: AccountLocks) {
  /** What each collect of this replica that holds a lock has sent, once it releases it. By config. */
  const holders = new Map<string, Promise<StoredTransaction | undefined>>();

  return {
    /**
     * Acquires the lock of the sharing config with this address. Throws {@link CollectError} `distribution-in-flight` or
     * `lease-not-acquired` at `endsAt`, a `performance.now()` time, or `stored-transaction-unreadable`.
     */
    async acquire(config: string, endsAt: number): Promise<Lease> {
      for (let holder; (holder = holders.get(config));) {
        const transaction = await before(endsAt, holder);
        if (transaction) return toFollow(transaction);
      }
      const { promise, resolve } = Promise.withResolvers<StoredTransaction | undefined>();
      holders.set(config, promise);
      let sent: StoredTransaction | undefined;
      const free = () => {
        holders.delete(config);
        resolve(sent);
      };
      const lease = await locks.acquire(config, endsAt).catch((error: unknown) => {
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

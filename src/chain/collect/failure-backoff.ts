import { LRUCache } from "lru-cache";
import { CollectError } from "../collect-error.ts";

const FIRST_BACKOFF_MS = 60_000;
const MAX_BACKOFF_MS = 3_600_000;
/** How long after its end a backoff still doubles the next one. */
const REMEMBERED_MS = 3_600_000;
/** Evicting an entry takes 10,000 paid failures, which the hourly fee budget limits. */
const MAX_ACCOUNTS = 10_000;

export type FailureBackoff = ReturnType<typeof createFailureBackoff>;

/**
 * Backs off accounts whose transactions fail on the chain although their simulation succeeded: each such
 * failure costs a fee, and anyone who can cause one can repeat it. The backoff is one minute and doubles with
 * each further failure in a row, up to an hour.
 */
export function createFailureBackoff() {
  const backoffs = new LRUCache<string, { readonly ms: number; readonly endsAt: number }>({
    max: MAX_ACCOUNTS,
  });

  return {
    /** Throws {@link CollectError} `backing-off` while the account backs off. */
    assertReady(address: string): void {
      const leftMs = (backoffs.get(address)?.endsAt ?? 0) - performance.now();
      if (leftMs > 0) throw new CollectError({ kind: "backing-off", leftMs });
    },

    failed(address: string): void {
      const last = backoffs.get(address);
      const ms = last ? Math.min(2 * last.ms, MAX_BACKOFF_MS) : FIRST_BACKOFF_MS;
      backoffs.set(address, { ms, endsAt: performance.now() + ms }, { ttl: ms + REMEMBERED_MS });
    },

    /** Forgets the account's failures. */
    succeeded(address: string): void {
      backoffs.delete(address);
    },
  };
}

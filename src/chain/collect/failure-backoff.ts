import { LRUCache } from "lru-cache";
import { CollectError } from "../collect-error.ts";
import type { Sweep } from "../sweeps.ts";

const FIRST_BACKOFF_MS = 60_000;
const MAX_BACKOFF_MS = 3_600_000;
/** How long after its end a backoff still doubles the next one. */
const REMEMBERED_MS = 3_600_000;
/** So many failures of an account's coins within an hour make a block's collects of it leave coins out for an hour. */
const MAX_COIN_FAILURES = 3;
const COIN_FAILURES_MS = 3_600_000;
/** Evicting an entry takes 10,000 paid failures, which the hourly fee budget limits. */
const MAX_ENTRIES = 10_000;

/** Stands for all accounts that share a coin's fees: one distribution pays all. */
const ANY_ACCOUNT = "";

export type FailureBackoff = ReturnType<typeof createFailureBackoff>;

/**
 * Backs off accounts whose transactions fail on the chain although their simulation succeeded: each such
 * failure costs a fee, and anyone who can cause one can repeat it. The backoff is one minute and doubles with
 * each further failure in a row, up to an hour.
 *
 * Anyone can name a coin whose sweep fails. So after a transaction with coins, only coins back off, each for the one
 * account; and an address block that repeats it can name no more coins of that account for a while.
 */
export function createFailureBackoff() {
  /** By address, or for coins by address (or {@link ANY_ACCOUNT}) and mint. */
  const backoffs = new LRUCache<string, { readonly ms: number; readonly endsAt: number }>({
    max: MAX_ENTRIES,
  });
  /** When an account's coins failed because of one address block, by address and block: the last three times. */
  const failuresOfBlocks = new LRUCache<string, readonly number[]>({
    max: MAX_ENTRIES,
    ttl: 2 * COIN_FAILURES_MS,
  });

  const keyOf = (address: string, part: string) => `${address} ${part}`;
  const leftMs = (key: string) => (backoffs.get(key)?.endsAt ?? 0) - performance.now();

  function backOff(key: string): void {
    const last = backoffs.get(key);
    const ms = last ? Math.min(2 * last.ms, MAX_BACKOFF_MS) : FIRST_BACKOFF_MS;
    backoffs.set(key, { ms, endsAt: performance.now() + ms }, { ttl: ms + REMEMBERED_MS });
  }

  /** How long a block's collects of the account leave out coins. */
  function leftMsOfBlock(address: string, block: string): number {
    const times = failuresOfBlocks.get(keyOf(address, block)) ?? [];
    const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
    if (times.length < MAX_COIN_FAILURES || last - first > COIN_FAILURES_MS) return 0;
    return last + COIN_FAILURES_MS - performance.now();
  }

  const leftMsOfBlocks = (address: string, blocks: ReadonlySet<string>) =>
    blocks.size === 0 ? 0 : Math.min(...[...blocks].map((block) => leftMsOfBlock(address, block)));

  return {
    /** Throws {@link CollectError} `backing-off` while the account backs off. */
    assertReady(address: string): void {
      const left = leftMs(address);
      if (left > 0) throw new CollectError({ kind: "backing-off", leftMs: left });
    },

    /**
     * For how many ms collects of the account leave out the sweep of a coin that these address blocks name: while the
     * coin backs off, for a distribution also because of another account, or each of the blocks has caused too many
     * failures. Not positive if they do not.
     */
    leftOutMs(address: string, { coin: { mint }, stage }: Sweep, blocks: ReadonlySet<string>): number {
      const ofAll = stage === "SHARED" ? leftMs(keyOf(ANY_ACCOUNT, mint)) : 0;
      return Math.max(leftMs(keyOf(address, mint)), ofAll, leftMsOfBlocks(address, blocks));
    },

    /** Whether a coin's distribution, or its sweep for another account, has failed within the last hours. */
    mayFail: ({ coin: { mint } }: Sweep): boolean => backoffs.has(keyOf(ANY_ACCOUNT, mint)),

    /** Whether collects of the account with coins that these blocks name do not leave out all of them. */
    mayNameCoins: (address: string, blocks: ReadonlySet<string>): boolean =>
      leftMsOfBlocks(address, blocks) <= 0,

    /** A transaction without coins failed. */
    failed: backOff,

    /**
     * A transaction failed because of one of these coins, which these blocks had named. It counts for a block only if
     * no other one can be the reason.
     */
    coinsFailed(address: string, mints: readonly string[], blocks: ReadonlySet<string>): void {
      for (const mint of mints) {
        backOff(keyOf(address, mint));
        backOff(keyOf(ANY_ACCOUNT, mint));
      }
      const [block] = blocks;
      if (block === undefined || blocks.size > 1) return;
      const times = failuresOfBlocks.get(keyOf(address, block)) ?? [];
      failuresOfBlocks.set(keyOf(address, block), [...times, performance.now()].slice(-MAX_COIN_FAILURES));
    },

    /** Forgets the failures of the account, and of the coins in its transaction. */
    succeeded(address: string, mints: readonly string[] = []): void {
      backoffs.delete(address);
      for (const mint of mints) {
        backoffs.delete(keyOf(address, mint));
        backoffs.delete(keyOf(ANY_ACCOUNT, mint));
      }
    },
  };
}

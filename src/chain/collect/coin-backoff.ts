import { createLruCache } from "../../store/lru-cache.ts";
import { afterFailure, backoffLeftMs, type Backoff } from "../../time/backoff.ts";
import type { Sweep } from "../choose-sweeps.ts";
import {
  LONG_AGO,
  monotonicNow,
  type MonotonicTime,
  msBetween,
  msSince,
} from "../../time/monotonic.ts";

const BACKOFF = { firstMs: 60_000, longestMs: 3_600_000 };
/** A failure within this time after a backoff has ended doubles the backoff. */
const REMEMBERED_MS = 3_600_000;
/**
 * An address block that makes an account's coins fail this often in an hour cannot collect them for
 * an hour.
 */
const MAX_COIN_FAILURES = 3;
const COIN_FAILURES_MS = 3_600_000;
/**
 * Evicting all entries takes more than 2,500 paid failures, because a collect has at most 19 coins.
 */
const MAX_ENTRIES = 50_000;

/**
 * Replaces the address in a key, for all accounts: a distribution pays everyone who shares the
 * coin's fees.
 */
const ANY_ACCOUNT = "";

/** Sweeps that may share a transaction. */
export interface Group {
  /** Unique, and stable as long as the group exists. */
  readonly id: symbol;
  readonly sweeps: readonly Sweep[];
  /**
   * Whether the group is kept apart from all other coins, because a transaction with it failed or
   * expired.
   */
  readonly isApart: boolean;
}

/** The group of all coins that are not kept apart. */
const REST = Symbol("the rest");

export type CoinBackoff = ReturnType<typeof createCoinBackoff>;

/**
 * Backs off coins that fail on the chain although their simulation succeeds: such failures can be
 * repeated, and each costs a fee. The backoff is one minute and doubles with each consecutive
 * failure, up to an hour.
 *
 * Anyone can request a coin whose sweep fails. So a failed transaction with coins backs off only
 * the coins that caused the failure, not the account. If these coins are unknown, nothing backs
 * off: the transaction's coins are kept apart from all others and split into halves, until one
 * fails alone. A failed coin is kept apart until it succeeds, so that others do not fail with it.
 * An address block that repeats failures cannot collect the account's coins for an hour.
 */
export function createCoinBackoff() {
  /** By address (or {@link ANY_ACCOUNT}) and mint. */
  const backoffs = createLruCache<string, Backoff>(MAX_ENTRIES);
  /**
   * By the same keys: the group of a coin kept apart, and its last try. By address: the last try of
   * {@link REST}.
   */
  const apart = createLruCache<string, { readonly id: symbol; readonly triedAt: MonotonicTime }>(
    MAX_ENTRIES,
    {
      ttl: BACKOFF.longestMs + REMEMBERED_MS,
    },
  );
  /**
   * The times of the last three failures, by the account's address and the address block that
   * caused them.
   */
  const failuresOfBlocks = createLruCache<string, readonly MonotonicTime[]>(MAX_ENTRIES, {
    ttl: 2 * COIN_FAILURES_MS,
  });

  const keyOf = (address: string, part: string) => `${address} ${part}`;
  const leftMs = (key: string) => backoffLeftMs(backoffs.get(key));

  function backOff(key: string): void {
    const backoff = afterFailure(backoffs.get(key), BACKOFF);
    backoffs.set(key, backoff, { ttl: backoff.waitMs + REMEMBERED_MS });
  }

  /** Puts all these coins in the group `id`; without `id`, puts each in its own group. */
  function setApart(address: string, mints: readonly string[], id?: symbol): void {
    const triedAt = monotonicNow();
    for (const mint of mints) apart.set(keyOf(address, mint), { id: id ?? Symbol(mint), triedAt });
  }

  /**
   * Returns for how many more ms all coins are left out if this address block collects the account.
   */
  function leftMsOfBlock(address: string, block: string | undefined): number {
    if (block === undefined) return 0;
    const times = failuresOfBlocks.get(keyOf(address, block)) ?? [];
    const [first = LONG_AGO, last = LONG_AGO] = [times[0], times.at(-1)];
    if (times.length < MAX_COIN_FAILURES || msBetween(first, last) > COIN_FAILURES_MS) return 0;
    return COIN_FAILURES_MS - msSince(last);
  }

  return {
    /**
     * Returns for how many more ms the sweep is left out if this address block collects; 0 or less
     * if it is included. The reason is the coin's backoff, or too many failures that the block has
     * caused.
     */
    leftOutMs: (address: string, { coin: { mint } }: Sweep, block: string | undefined): number =>
      Math.max(
        leftMs(keyOf(address, mint)),
        leftMs(keyOf(ANY_ACCOUNT, mint)),
        leftMsOfBlock(address, block),
      ),

    /** Whether collects that the address block requests may include the account's coins. */
    mayNameCoins: (address: string, block: string | undefined): boolean =>
      leftMsOfBlock(address, block) <= 0,

    /**
     * Returns the groups of an account's sweeps, the longest untried first. Exception: groups kept
     * apart that also collect the vaults precede all others. If such a group is left out, the rest
     * still collects the vaults.
     */
    inTurn(address: string, sweeps: readonly Sweep[]): Group[] {
      const entries = sweeps.map(
        ({ coin: { mint } }) =>
          apart.get(keyOf(ANY_ACCOUNT, mint)) ?? apart.get(keyOf(address, mint)),
      );
      const idOf = (i: number) => entries[i]?.id ?? REST;
      const groups = Map.groupBy(sweeps.keys(), idOf);
      if (!groups.has(REST)) groups.set(REST, []);
      return [...groups]
        .map(([id, indexes]) => {
          const some = indexes.map((i) => sweeps[i]!);
          const isApart = id !== REST;
          const triedAt = isApart
            ? entries[indexes[0]!]!.triedAt
            : (apart.get(address)?.triedAt ?? LONG_AGO);
          const isFirst = isApart && some.some(({ stage }) => stage !== "SHARED");
          return { id, isApart, sweeps: some, triedAt, isFirst };
        })
        .sort((a, b) => Number(b.isFirst) - Number(a.isFirst) || msBetween(b.triedAt, a.triedAt));
    },

    /**
     * Records a try of {@link REST}. Call when its transaction is signed and other groups still
     * wait.
     */
    restTried(address: string): void {
      apart.set(address, { id: REST, triedAt: monotonicNow() });
    },

    /**
     * Records a failed transaction, also against `block`. `culprits`: the coins that made it fail,
     * if known.
     */
    coinsFailed(
      address: string,
      mints: readonly string[],
      { culprits, block }: { culprits: readonly string[]; block: string | undefined },
    ): void {
      if (culprits.length > 0 || mints.length === 1) {
        const owner = culprits.length > 0 ? ANY_ACCOUNT : address;
        const failed = culprits.length > 0 ? culprits : mints;
        for (const mint of failed) backOff(keyOf(owner, mint));
        setApart(owner, failed);
      } else {
        const half = Math.ceil(mints.length / 2);
        setApart(address, mints.slice(0, half), Symbol("first half"));
        setApart(address, mints.slice(half), Symbol("second half"));
      }
      if (block === undefined) return;
      const times = failuresOfBlocks.get(keyOf(address, block)) ?? [];
      failuresOfBlocks.set(
        keyOf(address, block),
        [...times, monotonicNow()].slice(-MAX_COIN_FAILURES),
      );
    },

    /**
     * Records that a distribution of these coins' fees did not land: another shareholder may be the
     * reason.
     */
    expired(mints: readonly string[]): void {
      setApart(ANY_ACCOUNT, mints);
    },

    /** Forgets the failures of coins whose transaction succeeded. */
    succeeded(address: string, mints: readonly string[]): void {
      for (const key of mints.flatMap((mint) => [keyOf(address, mint), keyOf(ANY_ACCOUNT, mint)])) {
        backoffs.delete(key);
        apart.delete(key);
      }
    },
  };
}

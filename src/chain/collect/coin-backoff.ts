import { createLruCache } from "../../store/lru-cache.ts";
import type { Sweep } from "../choose-sweeps.ts";

const FIRST_BACKOFF_MS = 60_000;
const MAX_BACKOFF_MS = 3_600_000;
/** How long after its end a backoff still doubles the next one. */
const REMEMBERED_MS = 3_600_000;
/** So many failures of an account's coins within an hour make a block's collects of it leave coins out for an hour. */
const MAX_COIN_FAILURES = 3;
const COIN_FAILURES_MS = 3_600_000;
/** Evicting all takes 2,500 paid failures of twenty coins each. */
const MAX_ENTRIES = 50_000;

/** Stands for all accounts of a coin: one distribution pays all that share its fees. */
const ANY_ACCOUNT = "";

/** Sweeps that may share a transaction. */
export interface Group {
  /** Differs from that of every other group, and is the same as long as the group is. */
  readonly id: symbol;
  readonly sweeps: readonly Sweep[];
  /** Whether they are apart from the rest, because they failed together. */
  readonly isApart: boolean;
}

/** The group of the coins that are not apart. */
const REST = Symbol("the rest");

export type CoinBackoff = ReturnType<typeof createCoinBackoff>;

/**
 * Backs off coins that fail on the chain although their simulation succeeds: each such failure costs a fee, and anyone who
 * can cause one can repeat it. The backoff is one minute and doubles with each further failure in a row, up to an hour.
 *
 * Anyone can name a coin whose sweep fails, so after a transaction with coins not the account, only the coins that made it
 * fail back off. If none can be named, nothing does: its coins are apart from all
 * others, and from each other in two halves, until one fails by itself. A coin that failed is apart from the rest until it
 * succeeds, so that it fails nothing else. An address block that repeats failures can name no more coins of the account
 * for a while.
 */
export function createCoinBackoff() {
  /** By address (or {@link ANY_ACCOUNT}) and mint. */
  const backoffs = createLruCache<string, { readonly ms: number; readonly endsAt: number }>(MAX_ENTRIES);
  /** The group of each coin that is apart, by the same keys, and when it was last tried; by address that of the rest. */
  const apart = createLruCache<string, { readonly id: symbol; readonly triedAt: number }>(MAX_ENTRIES, {
    ttl: MAX_BACKOFF_MS + REMEMBERED_MS,
  });
  /** When an account's coins failed because of one address block, by address and block: the last three times. */
  const failuresOfBlocks = createLruCache<string, readonly number[]>(MAX_ENTRIES, {
    ttl: 2 * COIN_FAILURES_MS,
  });

  const keyOf = (address: string, part: string) => `${address} ${part}`;
  const leftMs = (key: string) => (backoffs.get(key)?.endsAt ?? 0) - performance.now();

  function backOff(key: string): void {
    const last = backoffs.get(key);
    const ms = last ? Math.min(2 * last.ms, MAX_BACKOFF_MS) : FIRST_BACKOFF_MS;
    backoffs.set(key, { ms, endsAt: performance.now() + ms }, { ttl: ms + REMEMBERED_MS });
  }

  /** Puts each of these coins in a group of its own, or all in one. */
  function setApart(address: string, mints: readonly string[], id?: symbol): void {
    const triedAt = performance.now();
    for (const mint of mints) apart.set(keyOf(address, mint), { id: id ?? Symbol(mint), triedAt });
  }

  /** How long a block's collects of the account leave out coins. */
  function leftMsOfBlock(address: string, block: string | undefined): number {
    if (block === undefined) return 0;
    const times = failuresOfBlocks.get(keyOf(address, block)) ?? [];
    const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
    if (times.length < MAX_COIN_FAILURES || last - first > COIN_FAILURES_MS) return 0;
    return last + COIN_FAILURES_MS - performance.now();
  }

  return {
    /**
     * For how many ms collects of the account that this block asks for leave out the sweep of a coin: while the coin
     * backs off, or the block has caused too many failures. Not positive if they do not.
     */
    leftOutMs: (address: string, { coin: { mint } }: Sweep, block: string | undefined): number =>
      Math.max(leftMs(keyOf(address, mint)), leftMs(keyOf(ANY_ACCOUNT, mint)), leftMsOfBlock(address, block)),

    /** Whether the block's collects of the account do not leave out all coins. */
    mayNameCoins: (address: string, block: string | undefined): boolean => leftMsOfBlock(address, block) <= 0,

    /**
     * The groups of an account's sweeps, in the order in which to try them: all take turns. The rest, to which the vaults
     * belong, comes after a group that collects them too, because that group can be left out, and the vaults not.
     */
    inTurn(address: string, sweeps: readonly Sweep[]): Group[] {
      const entries = sweeps.map(
        ({ coin: { mint } }) => apart.get(keyOf(ANY_ACCOUNT, mint)) ?? apart.get(keyOf(address, mint)),
      );
      const idOf = (i: number) => entries[i]?.id ?? REST;
      const groups = Map.groupBy(sweeps.keys(), idOf);
      if (!groups.has(REST)) groups.set(REST, []);
      return [...groups]
        .map(([id, indexes]) => {
          const some = indexes.map((i) => sweeps[i]!);
          const isApart = id !== REST;
          const triedAt = isApart ? entries[indexes[0]!]!.triedAt : (apart.get(address)?.triedAt ?? 0);
          return { id, isApart, sweeps: some, triedAt, isFirst: isApart && some.some(isOwn) };
        })
        .sort((a, b) => Number(b.isFirst) - Number(a.isFirst) || a.triedAt - b.triedAt);
    },

    /** A transaction for the rest is signed, while other groups wait for their turns. */
    restTried(address: string): void {
      apart.set(address, { id: REST, triedAt: performance.now() });
    },

    /**
     * A transaction with these coins failed because of the `culprits` among them, if any can be named. It counts for the
     * block that named the coins, if that is known.
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
      failuresOfBlocks.set(keyOf(address, block), [...times, performance.now()].slice(-MAX_COIN_FAILURES));
    },

    /** A transaction that distributes the fees of these coins did not land: another shareholder may be the reason. */
    expired(mints: readonly string[]): void {
      setApart(ANY_ACCOUNT, mints);
    },

    /** Forgets the failures of the coins in a transaction of the account. */
    succeeded(address: string, mints: readonly string[]): void {
      for (const key of mints.flatMap((mint) => [keyOf(address, mint), keyOf(ANY_ACCOUNT, mint)])) {
        backoffs.delete(key);
        apart.delete(key);
      }
    },
  };
}

/** Whether a sweep moves fees to the account's vaults, so that its transaction collects these too. */
const isOwn = ({ stage }: Sweep): boolean => stage !== "SHARED";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createCoinBackoff } from "../../../src/chain/collect/coin-backoff.ts";
import { toLamports } from "../../../src/chain/lamports.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import type { Sweep } from "../../../src/chain/choose-sweeps.ts";
import { newMint } from "../../support/new-mint.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const newSweep = (): Sweep => ({
  coin: coinAddressesOf(newMint()),
  stage: "CURVE",
  amount: toLamports(1),
  growthRent: toLamports(0),
});
const mintsOf = (sweeps: readonly Sweep[]) => sweeps.map(({ coin }) => coin.mint);

describe("the backoff of coins", () => {
  it("is for all accounts if the coin is named, and for one if it failed alone without being named", () => {
    const backoff = createCoinBackoff();
    const [named, alone, other] = [newSweep(), newSweep(), newSweep()];
    const failed = { block: undefined };
    backoff.coinsFailed("a", mintsOf([named, other]), { ...failed, culprits: mintsOf([named]) });
    backoff.coinsFailed("a", mintsOf([alone]), { ...failed, culprits: [] });
    const leftOut = (address: string) =>
      [named, alone, other].map((sweep) => backoff.leftOutMs(address, sweep, undefined) > 0);
    expect(leftOut("a")).toEqual([true, true, false]);
    expect(leftOut("b")).toEqual([true, false, false]);
  });

  it("counts failures while it lasts once: several accounts' transactions may fail together", () => {
    const backoff = createCoinBackoff();
    const sweep = newSweep();
    const failed = { culprits: mintsOf([sweep]), block: undefined };
    const leftMs = [];
    for (let i = 0; i < 3; i++) {
      for (const address of ["a", "b"]) backoff.coinsFailed(address, mintsOf([sweep]), failed);
      leftMs.push(backoff.leftOutMs("a", sweep, undefined));
      vi.advanceTimersByTime(leftMs[i]!);
    }
    expect(leftMs).toEqual([60_000, 120_000, 240_000]);
  });

  it("is for no coin if several failed and none can be named; the account's next transactions have half of them", () => {
    const backoff = createCoinBackoff();
    const sweeps = Array.from({ length: 5 }, newSweep);
    const halves = (address: string) =>
      backoff
        .inTurn(address, sweeps)
        .flatMap((group) => (group.sweeps.length > 0 ? [group.sweeps] : []));
    backoff.coinsFailed("a", mintsOf(sweeps), { culprits: [], block: undefined });
    for (const sweep of sweeps)
      expect(backoff.leftOutMs("a", sweep, undefined)).toBeLessThanOrEqual(0);
    expect(halves("a")).toEqual([sweeps.slice(0, 3), sweeps.slice(3)]);
    expect(halves("b")).toEqual([sweeps]);
  });

  const MINUTES = 24 * 60;
  /** As many as one collect can name besides the owner's, and as fit into its transaction. */
  const COINS_PER_COLLECT = 9;

  /**
   * A day in which each of three blocks names the owner's coin and some of its own every minute. A
   * transaction with any of these fails, or if they are `sly` only one with the owner's coin. Then
   * the owner names its coin alone.
   */
  function simulateDay(
    hostileCoins: number,
    { isNamed, isSly }: { isNamed: boolean; isSly: boolean },
  ) {
    const backoff = createCoinBackoff();
    const plain = newSweep();
    const hostile = Array.from({ length: hostileCoins }, newSweep);
    let next = 0;
    let failures = 0;
    /** The sweeps that succeed. */
    function collect(sweeps: readonly Sweep[], block: string): readonly Sweep[] {
      const ready = sweeps.filter((sweep) => backoff.leftOutMs("owner", sweep, block) <= 0);
      const tried =
        backoff.inTurn("owner", ready).find((group) => group.sweeps.length > 0)?.sweeps ?? [];
      const bad = tried.filter((sweep) => sweep !== plain);
      if (bad.length === 0 || (isSly && !tried.includes(plain))) {
        backoff.succeeded("owner", mintsOf(tried));
        return tried;
      }
      failures++;
      const culprits = isNamed ? mintsOf(bad.slice(0, 1)) : [];
      backoff.coinsFailed("owner", mintsOf(tried), { culprits, block });
      return [];
    }
    let minutesOut = 0;
    for (let minute = 0; minute < MINUTES; minute++) {
      for (const block of ["first", "second", "third"]) {
        const some = Array.from(
          { length: COINS_PER_COLLECT },
          () => hostile[next++ % hostileCoins]!,
        );
        collect([plain, ...new Set(some)], block);
      }
      if (!collect([plain], "owner's").includes(plain)) minutesOut++;
      vi.advanceTimersByTime(60_000);
    }
    return { partOut: minutesOut / MINUTES, failures };
  }

  for (const hostileCoins of [8, 80])
    for (const isNamed of [true, false])
      for (const isSly of [true, false])
        it(`leaves an owner's coin out at most 10% of a day with ${hostileCoins} failing coins of strangers: ${JSON.stringify({ isNamed, isSly })}`, () => {
          const { partOut, failures } = simulateDay(hostileCoins, { isNamed, isSly });
          expect(partOut).toBeLessThanOrEqual(0.1);
          // Each costs a fee: three an hour for each block.
          expect(failures).toBeGreaterThan(20);
          expect(failures).toBeLessThanOrEqual(3 * 3 * 24);
        });
});

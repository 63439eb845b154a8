import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { printHead, printRow } from "../../bench/measure.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { config, createSimulation } from "../support/simulated-lookups.ts";

const SECOND = 1_000;
const HOUR_SECONDS = 3_600;
const LINK_VIEWS = 5_000;
const CREATOR = "1523400000000000123";

/**
 * Lets requests and their batches go on, and calls be answered, in real turns of the event loop and
 * simulated time.
 */
async function passTime(ms: number): Promise<void> {
  await setImmediate();
  await vi.advanceTimersByTimeAsync(ms);
  await setImmediate();
}

describe("in simulated time", () => {
  beforeEach(() => {
    const toFake = ["setTimeout", "clearTimeout", "Date", "performance"] as const;
    vi.useFakeTimers({ toFake: [...toFake] });
    vi.advanceTimersByTime(1);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("a visitor's handles are found right after five blocks have requested 6,000 handles each", async () => {
    const { newCaller, meter } = createSimulation();
    const attackers = Array.from({ length: 5 }, (_, i) => newCaller(`attacker${i}`));
    for (let i = 0; i < 60; i++) {
      for (const attacker of attackers) void attacker.request(100);
      await passTime(3 * SECOND);
    }
    const visitor = newCaller("visitor");
    void visitor.request(3);
    for (let i = 0; i < 5; i++) await passTime(SECOND);
    expect(visitor.counts).toEqual({ found: 3 });
    expect(meter.charged).toBeLessThan(0.2 * config.socialReadsPerHour);
  });

  it("the same 100 ids, requested again and again from five blocks, cost 100 accounts", async () => {
    const { newCaller, meter } = createSimulation();
    const ids = Array.from({ length: 100 }, (_, i) => String(i + 1));
    const attackers = Array.from({ length: 5 }, (_, i) => newCaller(`attacker${i}`));
    for (let i = 0; i < 20; i++) {
      for (const attacker of attackers) void attacker.requestByIds(ids);
      await passTime(SECOND);
    }
    expect(attackers.map(({ counts }) => counts)).toEqual(Array(5).fill({ found: 2_000 }));
    expect(meter.charged).toBe(100);
  });

  it("5,000 views of a share link in an hour, each a query and a subscription, cost 13 accounts", async () => {
    const { newCaller, meter } = createSimulation();
    const visitors = Array.from({ length: LINK_VIEWS }, (_, i) => newCaller(`visitor${i}`));
    for (const [i, visitor] of visitors.entries()) {
      void visitor.requestByIds([CREATOR]);
      void visitor.requestByIds([CREATOR]);
      if (i % 10 === 9) await passTime((10 * HOUR_SECONDS * SECOND) / LINK_VIEWS);
    }
    expect(new Set(visitors.map(({ counts }) => counts.found))).toEqual(new Set([2]));
    expect(meter.charged).toBeLessThanOrEqual(13);
  });

  it("a lone block that always asks gets a quarter of the names in any hour, and an IPv6 /32 an eighth", async () => {
    for (const [blocks, most] of [
      [["192.0.2.0/24"], 2_500],
      [Array.from({ length: 40 }, (_, i) => `2001:db8:${i}::/48`), 1_250],
    ] as const) {
      const budget = createReadBudget({ ...config, redis: undefined });
      let got = 0;
      for (let second = 0; second < HOUR_SECONDS; second += 10) {
        for (const block of blocks) got += (await budget(100, block)).paid;
        vi.advanceTimersByTime(10 * SECOND);
      }
      expect(got).toBeLessThanOrEqual(most);
      expect(got).toBeGreaterThan(0.9 * most);
    }
  });

  it("a caller that asks for 1,000 names at once gets a third of them at once, and all within the hour", async () => {
    const budget = createReadBudget({ ...config, redis: undefined });
    let missing = 1_000;
    const gotAt: number[] = [];
    for (let second = 0; missing > 0; second += 30) {
      const { paid } = await budget(missing, "192.0.2.0/24");
      missing -= paid;
      gotAt.push(...Array<number>(paid).fill(second));
      vi.advanceTimersByTime(30 * SECOND);
    }
    expect(gotAt.filter((second) => second === 0).length).toBeGreaterThan(333);
    expect(gotAt.at(-1)).toBeLessThan(HOUR_SECONDS);
  });

  it("callers who have left before their lookups start cause no read", async () => {
    const { newCaller, meter } = createSimulation();
    for (let i = 0; i < 30; i++) void newCaller(`gone${i}`, AbortSignal.abort()).request(1);
    await passTime(SECOND);
    expect(meter).toEqual({ calls: 0, charged: 0 });
  });
});

describe("SECURITY.md", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const page = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
  const STEP_SECONDS = 10;
  const BURST_EVERY_SECONDS = 600;
  const RETRY_SECONDS = 30;
  const COUNTS_OF_BLOCKS = [5, 50, 250, 500];

  /**
   * An hour of the rule at the default settings. `attackers` blocks request more names than they
   * can get: all the time, or for ten seconds in every ten minutes. Right after them come honest
   * callers: a person every ten seconds, who asks once for three names, five bots with 200 names
   * and an indexer with 5,000, who ask again for what they did not get. With `isWide`, the people
   * and the attackers are in one IPv6 /32. Returns the part of the people who got all names, the
   * parts of their names that bots and the indexer got, and what all together were charged.
   */
  async function simulate(
    attackers: number,
    { isInBursts = false, areHonestCallersHere = true, isWide = false } = {},
  ) {
    const budget = createReadBudget({ ...config, redis: undefined });
    let charged = 0;
    const ask = async (block: string, count: number): Promise<number> => {
      const got = (await budget(count, block)).paid;
      charged += got;
      return got;
    };
    const toBlock = (kind: string, i: number) =>
      isWide
        ? `2001:db8:${kind === "person" ? 1 : 2}${i.toString(16).padStart(3, "0")}::/48`
        : `${kind}${i}`;
    const blocks = Array.from({ length: attackers }, (_, i) => toBlock("attacker", i));
    const people: number[] = [];
    const bots = Array.from({ length: 5 }, (_, i) => ({
      block: `bot${i}`,
      from: 600 * i,
      missing: 200,
    }));
    const indexer = { block: "indexer", from: 0, missing: 5_000 };
    for (let time = 0; time < HOUR_SECONDS; time += STEP_SECONDS) {
      // Each time another of them is first.
      const first = (time / STEP_SECONDS) % attackers;
      const order = [...blocks.slice(first), ...blocks.slice(0, first)];
      const isAttack = !isInBursts || time % BURST_EVERY_SECONDS < 10;
      for (const block of isAttack ? order : []) await ask(block, time === 0 ? 400 : 20);
      if (areHonestCallersHere) people.push(await ask(toBlock("person", time), 3));
      for (const caller of areHonestCallersHere ? [...bots, indexer] : []) {
        if (time < caller.from || (time - caller.from) % RETRY_SECONDS > 0) continue;
        caller.missing -= await ask(caller.block, Math.min(caller.missing, 400));
      }
      vi.advanceTimersByTime(STEP_SECONDS * SECOND);
    }
    const parts = [
      people.filter((got) => got === 3).length / people.length,
      1 - bots.reduce((sum, { missing }) => sum + missing, 0) / (200 * bots.length),
      1 - indexer.missing / 5_000,
    ] as const;
    return { parts, charged };
  }

  const percent = (part: number) => `${Math.floor(part * 100)}%`;
  /** The numbers in the line that starts with this text. */
  const numbersIn = (start: string) =>
    page
      .split("\n")
      .find((line) => line.startsWith(start))
      ?.match(/\d+(,\d{3})*%?/g);

  it("states who is still served beside attacking blocks: beside 50 nearly every person", async () => {
    printHead("Blocks", "A person: 3 names", "A bot: 200", "An indexer: 5,000");
    const served = new Map<number, readonly string[]>();
    const people: number[] = [];
    for (const attackers of COUNTS_OF_BLOCKS) {
      const always = await simulate(attackers);
      const inBursts = await simulate(attackers, { isInBursts: true });
      people.push(always.parts[0]);
      for (const { charged } of [always, inBursts])
        expect(charged).toBeLessThanOrEqual(config.socialReadsPerHour);
      served.set(attackers, always.parts.map(percent));
      const cells = always.parts.map(
        (part, i) => `${percent(part)} (${percent(inBursts.parts[i]!)})`,
      );
      printRow(attackers, ...cells);
    }
    expect(people.map((part, i) => part >= [0.99, 0.99, 0.92, 0.85][i]!)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    const [beside5, beside50, beside500] = [5, 50, 500].map((blocks) => served.get(blocks)!);
    expect(numbersIn("- Beside 50 blocks")).toEqual([
      "50",
      beside50![0],
      "3",
      "500",
      beside500![0],
    ]);
    expect(numbersIn("- A bot")).toEqual([
      ...["200", beside5![1], "5", beside50![1], "50"],
      ...["5,000", beside5![2], "5"],
    ]);
  });

  it("states how many people in an attacker's IPv6 /32 are served", async () => {
    const parts = [];
    for (const attackers of [5, 50])
      parts.push(percent((await simulate(attackers, { isWide: true })).parts[0]));
    expect(page.match(/if 5 of its \/48s attack, (\d+%).*if 50 do, (\d+%)/)?.slice(1)).toEqual(
      parts,
    );
  });

  it("states what attackers in 1, 9 and 1,000 blocks can make the network charge in an hour", async () => {
    const charged = [];
    for (const attackers of [1, 9, 1_000])
      charged.push((await simulate(attackers, { areHonestCallersHere: false })).charged);
    for (const count of charged) expect(count).toBeLessThanOrEqual(config.socialReadsPerHour);
    // All but a part of what it holds, half of which is left in the end.
    for (const count of charged.slice(1))
      expect(count).toBeGreaterThan(0.9 * config.socialReadsPerHour);
    const limit = config.socialReadsPerHour;
    const dollars = [limit / 4, limit, limit].map((accounts) => String(Math.ceil(accounts / 100)));
    expect(charged[0]).toBeGreaterThan(0.95 * (limit / 4));
    expect(dollars[2]).toBe(dollars[1]);
    expect(numbersIn("- **Charges**")).toEqual([dollars[0], "1", dollars[1], "9"]);
  });
});

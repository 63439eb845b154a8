import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
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

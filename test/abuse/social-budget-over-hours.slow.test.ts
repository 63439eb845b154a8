import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { config, createSimulation } from "../support/simulated-lookups.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HANDLES_PER_REQUEST = 100;

/**
 * Lets batches be sent, at the end of a real turn of the event loop, before simulated time goes on.
 */
const sent = (): Promise<void> => setImmediate();

/** Calls `act` every `everyMs` of simulated time, and waits for what is then in flight. */
async function repeat(
  durationMs: number,
  everyMs: number,
  act: (timeMs: number) => void,
): Promise<void> {
  for (let timeMs = 0; timeMs < durationMs; timeMs += everyMs) {
    act(timeMs);
    await sent();
    await vi.advanceTimersByTimeAsync(everyMs);
  }
  await vi.advanceTimersByTimeAsync(config.socialTimeoutMs);
}

describe("the budget of reads of the network, in simulated time", () => {
  beforeEach(() => {
    const toFake = ["setTimeout", "clearTimeout", "Date", "performance"] as const;
    vi.useFakeTimers({ toFake: [...toFake] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("one unknown handle per second is served for a whole window of the network's rate limit", async () => {
    const { newCaller, meter } = createSimulation();
    const callers = Array.from({ length: 3 }, (_, i) => newCaller(`honest${i}`));
    await repeat(15 * MINUTE, SECOND, (timeMs) => void callers[(timeMs / SECOND) % 3]!.request(1));
    expect(callers.map(({ counts }) => counts)).toEqual(callers.map(() => ({ found: 300 })));
    expect(meter.calls).toBeLessThanOrEqual(300);
  });

  it("30 unknown handles per second are served as far as the network's limit allows", async () => {
    const { newCaller } = createSimulation({ socialReadsPerHour: 0 });
    const callers = Array.from({ length: 900 }, (_, i) => newCaller(`honest${i}`));
    let requests = 0;
    await repeat(15 * MINUTE, SECOND / 10, () => {
      for (let i = 0; i < 3; i++) void callers[requests++ % callers.length]!.request(1);
    });
    const found = callers.reduce((sum, { counts }) => sum + (counts.found ?? 0), 0);
    expect(found).toBeGreaterThan(0.87 * requests);
  });

  it("lookups fail at once when the network allows no more calls", async () => {
    const { newCaller, meter } = createSimulation({}, 1);
    const caller = newCaller("honest");
    for (let i = 0; i < 2; i++) {
      void caller.request(1);
      await sent();
      await vi.advanceTimersByTimeAsync(config.socialTimeoutMs);
    }
    for (let i = 0; i < 5; i++) await caller.request(1);
    expect([caller.counts, meter.calls]).toEqual([{ found: 1, "rate-limited": 6 }, 2]);
  });

  it("a caller that asks for unknown handles as fast as it can costs no more than a quarter of the budget", async () => {
    const { newCaller, meter } = createSimulation();
    const attacker = newCaller("attacker");
    await repeat(60 * MINUTE, 3 * SECOND, () => void attacker.request(HANDLES_PER_REQUEST));
    expect(meter.charged).toBeLessThanOrEqual(config.socialReadsPerHour / 4);
    expect(meter.charged).toBeGreaterThan(0.23 * config.socialReadsPerHour);
    expect(attacker.counts["budget-used"]).toBeGreaterThan(50_000);
  });

  it("nine callers that ask for unknown handles as fast as they can cost no more than the budget", async () => {
    const { newCaller, meter } = createSimulation();
    const attackers = Array.from({ length: 9 }, (_, i) => newCaller(`attacker${i}`));
    await repeat(60 * MINUTE, 3 * SECOND, () => {
      for (const attacker of attackers) void attacker.request(HANDLES_PER_REQUEST);
    });
    expect(meter.charged).toBeLessThanOrEqual(config.socialReadsPerHour);
    // Half of what the budget holds is left to others.
    expect(meter.charged).toBeGreaterThan(0.9 * config.socialReadsPerHour);
  });

  it.each([
    ["batches of 100 unknown handles, 1,200 an hour", 100, 5 * MINUTE, 3_600],
    ["batches of 20 unknown handles, 1,800 an hour", 20, 40 * SECOND, 5_400],
  ])("a caller with %s is never refused", async (_name, handles, everyMs, found) => {
    const { newCaller, meter } = createSimulation();
    const heavy = newCaller("heavy");
    await repeat(180 * MINUTE, everyMs, () => void heavy.request(handles));
    expect(heavy.counts).toEqual({ found });
    expect(meter.charged).toBe(found);
  });

  describe("against four attackers at the rate limit, lookups of unknown handles succeed for 7.5 minutes", () => {
    it.each([
      ["100 accounts, at an even pace", 3 * SECOND, HANDLES_PER_REQUEST, "handle"],
      ["100 accounts, all at once", 0, HANDLES_PER_REQUEST, "handle"],
      ["100 handles that do not exist, at an even pace", 3 * SECOND, HANDLES_PER_REQUEST, "nobody"],
      ["100 handles that do not exist, all at once", 0, HANDLES_PER_REQUEST, "nobody"],
      ["one account, at an even pace", 3 * SECOND, 1, "handle"],
      ["one handle that does not exist, all at once", 0, 1, "nobody"],
    ])("each request for %s", async (_name, paceMs, handles, prefix) => {
      const { newCaller } = createSimulation();
      const honest = newCaller("honest");
      const attackers = Array.from({ length: 4 }, (_, i) => newCaller(`attacker${i}`));
      const others = Array.from({ length: 3 }, (_, i) => newCaller(`other${i}`));
      await repeat(7.5 * MINUTE, SECOND, (timeMs) => {
        void [honest, ...others][(timeMs / SECOND) % 4]!.request(1);
        if (paceMs && timeMs % paceMs > 0) return;
        const requests = paceMs ? 1 : timeMs % MINUTE === 0 ? config.rateLimitMax : 0;
        for (const attacker of attackers)
          for (let i = 0; i < requests; i++) void attacker.request(handles, prefix);
      });
      const found = [honest, ...others].reduce((sum, { counts }) => sum + (counts.found ?? 0), 0);
      expect(found).toBeGreaterThanOrEqual(0.95 * 450);
    });
  });
});

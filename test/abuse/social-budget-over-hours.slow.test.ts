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
      ["100 accounts, all at once", 0, HANDLES_PER_REQUEST, "handle"],
      ["100 handles that do not exist, all at once", 0, HANDLES_PER_REQUEST, "nobody"],
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

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLogger } from "../../src/observability/log.ts";
import { createWarnings } from "../../src/observability/warnings.ts";
import { createCircuitBreaker } from "../../src/social/circuit-breaker.ts";
import { SocialError } from "../../src/social/social-error.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const log = createLogger("silent");
const newBreaker = () => createCircuitBreaker({ log, warnings: createWarnings(log) });
const refused = (status: number) => new SocialError({ kind: "refused", status, problem: "" });
const limited = (retryAfterSeconds: number) =>
  new SocialError({ kind: "rate-limited", retryAfterSeconds });
const unreachable = () => new SocialError({ kind: "unreachable" });
const unreadable = () => new SocialError({ kind: "unreadable" });

/**
 * Makes a call through the breaker, lets 400 ms pass, and returns "ok" or the kind of the failure.
 */
async function resultOf(breaker: ReturnType<typeof newBreaker>, call: () => Promise<unknown>) {
  const result = breaker
    .call(call)
    .then((answer) => (answer instanceof SocialError ? answer.failure.kind : "ok"));
  await vi.advanceTimersByTimeAsync(400);
  return result;
}

describe("the circuit breaker", () => {
  it.each([
    ["a broken connection", unreachable(), 2],
    ["503", refused(503), 2],
    ["an unreadable response", unreadable(), 1],
    ["a timeout", new SocialError({ kind: "timeout" }), 1],
    ["401", refused(401), 1],
    ["400", refused(400), 1],
    ["429", limited(10), 1],
  ])("retries a call only when a retry can help: %s", async (_name, error, times) => {
    const call = vi.fn(() => Promise.resolve(error));
    expect(await resultOf(newBreaker(), call)).toBe(error.failure.kind);
    expect(call).toHaveBeenCalledTimes(times);
  });

  it("opens once calls have failed for a second, for a time that doubles up to half a minute, and closes when a call succeeds", async () => {
    const breaker = newBreaker();
    const failing = () => breaker.call(() => Promise.resolve(unreadable()));
    for (let ms = 125; ms < 60_000; ms *= 2) {
      // Those of calls at the same time count once.
      for (const result of await Promise.all([failing(), failing()]))
        expect(result).toMatchObject({ failure: { kind: "unreadable" } });
      const openMs = Math.min(ms, 30_000);
      if (openMs < 1_000) expect(breaker.refusal()).toBeUndefined();
      else {
        const failure = { kind: "circuit-open", retryAfterSeconds: openMs / 1_000 };
        expect(await failing()).toMatchObject({ failure });
      }
      await vi.advanceTimersByTimeAsync(openMs);
    }
    expect(breaker.describe()).toMatchObject({ circuit: "half-open" });
    expect(await resultOf(breaker, () => Promise.resolve("value"))).toBe("ok");
    expect(breaker.describe()).toEqual({ circuit: "closed" });
  });

  it("makes no call between a 429 and its reset, and then calls again", async () => {
    const breaker = newBreaker();
    await Promise.all(
      [800, 60].map((seconds) => breaker.call(() => Promise.resolve(limited(seconds)))),
    );
    await vi.advanceTimersByTimeAsync(100_000);
    const working = vi.fn(() => Promise.resolve("value"));
    const failure = { kind: "rate-limited", retryAfterSeconds: 700 };
    expect(breaker.refusal()).toMatchObject({ failure });
    expect(await breaker.call(working)).toMatchObject({ failure });
    expect(working).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(700_000);
    expect(breaker.refusal()).toBeUndefined();
    expect(await breaker.call(working)).toBe("value");
  });

  it("keeps a 429 until its reset, whatever the calls in flight return, and then counts outages from the start", async () => {
    const breaker = newBreaker();
    const [outage, success] = [Promise.withResolvers(), Promise.withResolvers()];
    const inFlight = [outage, success].map(({ promise }) => breaker.call(() => promise));
    await breaker.call(() => Promise.resolve(limited(10)));
    outage.resolve(unreadable());
    success.resolve("value");
    await Promise.all(inFlight);
    expect(breaker.refusal()).toMatchObject({ failure: limited(10).failure });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await resultOf(breaker, () => Promise.resolve(unreadable()))).toBe("unreadable");
    expect(breaker.refusal()).toBeUndefined();
  });

  it("does not count a 400 as an outage", async () => {
    const breaker = newBreaker();
    const rejected = vi.fn(() => Promise.resolve(refused(400)));
    for (let i = 0; i < 10; i++) await resultOf(breaker, rejected);
    expect(rejected).toHaveBeenCalledTimes(10);
  });
});

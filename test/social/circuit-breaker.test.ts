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
  const result = breaker.call(call).then(
    () => "ok",
    (error: unknown) => (error as SocialError).failure.kind,
  );
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
    const call = vi.fn(() => Promise.reject(error));
    expect(await resultOf(newBreaker(), call)).toBe(error.failure.kind);
    expect(call).toHaveBeenCalledTimes(times);
  });

  it("opens after five failures in a row, for a time that doubles up to half a minute, and closes when a trial call succeeds", async () => {
    const breaker = newBreaker();
    const failing = vi.fn(() => Promise.reject(unreadable()));
    for (let i = 0; i < 4; i++) await resultOf(breaker, failing);
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      await expect(breaker.call(failing)).rejects.toMatchObject({
        failure: { kind: "unreadable" },
      });
      await expect(breaker.call(failing)).rejects.toMatchObject({
        failure: { kind: "circuit-open", retryAfterSeconds: seconds },
      });
      await vi.advanceTimersByTimeAsync(seconds * 1_000);
    }
    expect(failing).toHaveBeenCalledTimes(4 + 7);
    const working = () => Promise.resolve("value");
    expect([await resultOf(breaker, working), await resultOf(breaker, working)]).toEqual([
      "ok",
      "ok",
    ]);
  });

  it("makes one trial call and rejects the other calls at once", async () => {
    const breaker = newBreaker();
    const failing = () => Promise.reject(unreadable());
    for (let i = 0; i < 5; i++) await resultOf(breaker, failing);
    await vi.advanceTimersByTimeAsync(30_000);
    const hanging = vi.fn(() => new Promise<string>(() => undefined));
    void breaker.call(hanging).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(0);
    const other = vi.fn(() => Promise.resolve("value"));
    await expect(breaker.call(other)).rejects.toMatchObject({
      failure: { kind: "circuit-open" },
    });
    expect([hanging, other].map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
  });

  it("makes no call between a 429 and its reset, the latest of several, and then calls again", async () => {
    const breaker = newBreaker();
    const limits = [800, 60].map((seconds) => breaker.call(() => Promise.reject(limited(seconds))));
    expect(await Promise.allSettled(limits)).toMatchObject([
      { status: "rejected" },
      { status: "rejected" },
    ]);
    await vi.advanceTimersByTimeAsync(100_000);
    const working = vi.fn(() => Promise.resolve("value"));
    const failure = { kind: "rate-limited", retryAfterSeconds: 700 };
    expect(breaker.refusal()).toMatchObject({ failure });
    await expect(breaker.call(working)).rejects.toMatchObject({ failure });
    expect(working).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(700_000);
    expect(breaker.refusal()).toBeUndefined();
    expect(await breaker.call(working)).toBe("value");
  });

  it("stays open for calls that began before it opened", async () => {
    const breaker = newBreaker();
    const early = Promise.withResolvers<string>();
    const begun = breaker.call(() => early.promise);
    for (let i = 0; i < 5; i++) await resultOf(breaker, () => Promise.reject(unreadable()));
    early.resolve("value");
    expect(await begun).toBe("value");
    expect(breaker.refusal()).toMatchObject({ failure: { kind: "circuit-open" } });
  });

  it("does not count a 400 as an outage", async () => {
    const breaker = newBreaker();
    const rejected = vi.fn(() => Promise.reject(refused(400)));
    for (let i = 0; i < 10; i++) await resultOf(breaker, rejected);
    expect(rejected).toHaveBeenCalledTimes(10);
  });
});

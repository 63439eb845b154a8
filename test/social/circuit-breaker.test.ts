import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ContractError } from "../../src/contract/errors.ts";
import { createLogger } from "../../src/observability/log.ts";
import { createGuard, Refusal } from "../../src/social/circuit-breaker.ts";
import { BrokenConnection } from "../../src/upstream/http.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const newGuard = () => createGuard({ timeoutMs: 5_000, log: createLogger("silent") });
const unavailable = (cause: Error) => new ContractError("SOCIAL_API_UNAVAILABLE", { cause });
const broken = () => unavailable(new BrokenConnection("the connection failed"));

/** The code that a guarded call ends with, while time goes by; `call` is called as often as the guard does. */
async function codeOf(guard: ReturnType<typeof newGuard>, call: () => Promise<unknown>) {
  const code = guard.call(call, guard.newDeadline()).then(
    () => "ok",
    (error: unknown) => (error as ContractError).code,
  );
  await vi.advanceTimersByTimeAsync(400);
  return code;
}

describe("the guard before the network", () => {
  it.each([
    ["a broken connection", broken(), 2],
    ["503", unavailable(new Refusal(503, "")), 2],
    ["an answer that cannot be read", unavailable(new Error("unreadable")), 1],
    ["a time-out", unavailable(new DOMException("timed out", "TimeoutError")), 1],
    ["401", unavailable(new Refusal(401, "")), 1],
    ["400", unavailable(new Refusal(400, "")), 1],
    ["429", new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds: 10 }), 1],
  ])("makes a call that ends with %s as often as is of use", async (_name, error, times) => {
    const call = vi.fn(() => Promise.reject(error));
    expect(await codeOf(newGuard(), call)).toBe(error.code);
    expect(call).toHaveBeenCalledTimes(times);
  });

  it("succeeds when the second try does", async () => {
    const call = vi.fn().mockRejectedValueOnce(broken()).mockResolvedValueOnce("value");
    expect(await codeOf(newGuard(), call)).toBe("ok");
  });

  it("makes no call after a 429 before the reset that it named, and tells the time that remains", async () => {
    const guard = newGuard();
    const limited = new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds: 100 });
    await codeOf(guard, () => Promise.reject(limited));
    await vi.advanceTimersByTimeAsync(59_600);
    const call = vi.fn(() => Promise.resolve("value"));
    await expect(guard.call(call, guard.newDeadline())).rejects.toMatchObject({
      code: "SOCIAL_RATE_LIMITED",
      retryAfterSeconds: 40,
    });
    await vi.advanceTimersByTimeAsync(40_000);
    expect(await codeOf(guard, call)).toBe("ok");
    expect(call).toHaveBeenCalledTimes(1);
  });

  it("makes no call after five failures in a row, then one at a time until one succeeds", async () => {
    const guard = newGuard();
    const failing = vi.fn(() => Promise.reject(unavailable(new Error("unreadable"))));
    for (let i = 0; i < 5; i++) expect(await codeOf(guard, failing)).toBe("SOCIAL_API_UNAVAILABLE");
    expect(failing).toHaveBeenCalledTimes(5);
    await expect(guard.call(failing, guard.newDeadline())).rejects.toMatchObject({
      code: "SOCIAL_API_UNAVAILABLE",
    });
    expect(failing).toHaveBeenCalledTimes(5);
    // codeOf has let 400 ms go by: the rest of the first second is as quiet.
    await vi.advanceTimersByTimeAsync(590);
    await expect(guard.call(failing, guard.newDeadline())).rejects.toMatchObject({
      code: "SOCIAL_API_UNAVAILABLE",
    });
    expect(failing).toHaveBeenCalledTimes(5);

    await vi.advanceTimersByTimeAsync(30_000);
    const working = vi.fn(() => Promise.resolve("value"));
    expect(await codeOf(guard, working)).toBe("ok");
    expect(await codeOf(guard, working)).toBe("ok");
    expect(working).toHaveBeenCalledTimes(2);
  });

  it("keeps to the longest wait that it was told, however many are told at once", async () => {
    const guard = newGuard();
    const limited = (retryAfterSeconds: number) => () =>
      Promise.reject(new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds }));
    await Promise.all([codeOf(guard, limited(800)), codeOf(guard, limited(60))]);
    const call = vi.fn(() => Promise.resolve("value"));
    await expect(guard.call(call, guard.newDeadline())).rejects.toMatchObject({ retryAfterSeconds: 800 });
  });

  it("tries again with one call while the others are answered at once", async () => {
    const guard = newGuard();
    const failing = () => Promise.reject(unavailable(new Error("unreadable")));
    for (let i = 0; i < 5; i++) await codeOf(guard, failing);
    await vi.advanceTimersByTimeAsync(30_000);
    const hanging = vi.fn(() => new Promise<string>(() => undefined));
    void guard.call(hanging, guard.newDeadline()).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(0);
    const other = vi.fn(() => Promise.resolve("value"));
    await expect(guard.call(other, guard.newDeadline())).rejects.toMatchObject({
      code: "SOCIAL_API_UNAVAILABLE",
    });
    expect([hanging, other].map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
  });

  it("makes no second try when it has been told to wait meanwhile", async () => {
    const guard = newGuard();
    const call = vi.fn(() => Promise.reject(broken()));
    const first = codeOf(guard, call);
    const limited = new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds: 100 });
    void guard.call(() => Promise.reject(limited), guard.newDeadline()).catch(() => undefined);
    expect(await first).toBe("SOCIAL_RATE_LIMITED");
    expect(call).toHaveBeenCalledTimes(1);
  });

  it("takes a refusal of one call's form for no failure of the network", async () => {
    const guard = newGuard();
    const refused = vi.fn(() => Promise.reject(unavailable(new Refusal(400, ""))));
    for (let i = 0; i < 10; i++) await codeOf(guard, refused);
    expect(refused).toHaveBeenCalledTimes(10);
  });
});

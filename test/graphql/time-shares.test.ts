import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { TRUSTED_BLOCK } from "../../src/fairness/budget.ts";
import { createTimeShares } from "../../src/graphql/time-shares.ts";

const BLOCK = "2001:db8::/48";
let shares: ReturnType<typeof createTimeShares>;
beforeEach(() => {
  vi.useFakeTimers();
  shares = createTimeShares();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Runs operations of 50 ms, one after the other, for a minute. Returns how many ran. */
async function operate(block: string): Promise<number> {
  const endsAt = performance.now() + 60_000;
  let count = 0;
  while (performance.now() < endsAt) {
    const turn = shares.turn(block);
    await vi.advanceTimersByTimeAsync(200);
    await turn;
    shares.measure(block, () => vi.advanceTimersByTime(50));
    count++;
  }
  return count;
}

it("a block's operations take a quarter of the time", async () => {
  const count = await operate(BLOCK);
  expect((count * 50) / 60_000).toBeCloseTo(0.2, 1);
});

it("a block that has been idle takes its turn at once, however much others have taken", async () => {
  shares.charge(BLOCK, 10_000);
  await shares.turn("192.0.2.0/24");
  for (let i = 0; i < 5; i++) {
    await shares.turn("192.0.2.0/24");
    shares.charge("192.0.2.0/24", 49);
  }
});

it("a block that has taken far more than its share is refused, and says when to try again", async () => {
  shares.charge(BLOCK, 2_000);
  await expect(shares.turn(BLOCK)).rejects.toMatchObject({
    code: "RATE_LIMITED",
    retryAfterSeconds: 7,
    extensions: { scope: "CALLER" },
  });
  vi.advanceTimersByTime(7_000);
  await shares.turn(BLOCK);
});

it("at most 50 operations of a block wait, and run one after the other", async () => {
  shares.charge(BLOCK, 500);
  const order: number[] = [];
  const turns = Array.from({ length: 50 }, async (_, i) => {
    await shares.turn(BLOCK);
    order.push(performance.now());
    shares.charge(BLOCK, i === 0 ? 250 : 10);
  });
  const results = Promise.allSettled(turns);
  await expect(shares.turn(BLOCK)).rejects.toMatchObject({ code: "RATE_LIMITED" });
  await vi.advanceTimersByTimeAsync(10_000);
  await results;
  expect(order[1]! - order[0]!).toBeGreaterThanOrEqual(1_000);
});

it("trusted callers never wait", async () => {
  shares.charge(TRUSTED_BLOCK, 1_000_000);
  await shares.turn(TRUSTED_BLOCK);
});

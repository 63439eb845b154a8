import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { TRUSTED_BLOCK } from "../../src/fairness/budget.ts";
import { createTimeShares } from "../../src/graphql/time-shares.ts";

const BLOCK = "2001:db8::/48";
let shareOf: ReturnType<typeof createTimeShares>;
beforeEach(() => {
  vi.useFakeTimers();
  shareOf = createTimeShares();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Runs operations of 50 ms, one after the other, for a minute. Returns how many ran. */
async function operate(block: string): Promise<number> {
  const endsAt = performance.now() + 60_000;
  let count = 0;
  while (performance.now() < endsAt) {
    const turn = shareOf(block).turn();
    await vi.advanceTimersByTimeAsync(200);
    await turn;
    shareOf(block).measure(() => vi.advanceTimersByTime(50));
    count++;
  }
  return count;
}

it("a block's operations take a quarter of the time", async () => {
  const count = await operate(BLOCK);
  expect((count * 50) / 60_000).toBeCloseTo(0.2, 1);
});

it("a block that has been idle takes its turn at once, however much others have taken", async () => {
  shareOf(BLOCK).charge(10_000);
  await shareOf("192.0.2.0/24").turn();
  for (let i = 0; i < 5; i++) {
    await shareOf("192.0.2.0/24").turn();
    shareOf("192.0.2.0/24").charge(49);
  }
});

it("a block that has taken far more than its share is refused, and says when to try again", async () => {
  shareOf(BLOCK).charge(2_000);
  await expect(shareOf(BLOCK).turn()).rejects.toMatchObject({
    code: "RATE_LIMITED",
    retryAfterSeconds: 7,
    extensions: { scope: "CALLER" },
  });
  vi.advanceTimersByTime(7_000);
  await shareOf(BLOCK).turn();
});

it("at most 50 operations of a block wait, and run one after the other", async () => {
  shareOf(BLOCK).charge(500);
  const order: number[] = [];
  const turns = Array.from({ length: 50 }, async (_, i) => {
    await shareOf(BLOCK).turn();
    order.push(performance.now());
    shareOf(BLOCK).charge(i === 0 ? 250 : 10);
  });
  const results = Promise.allSettled(turns);
  await expect(shareOf(BLOCK).turn()).rejects.toMatchObject({ code: "RATE_LIMITED" });
  await vi.advanceTimersByTimeAsync(10_000);
  await results;
  expect(order[1]! - order[0]!).toBeGreaterThanOrEqual(1_000);
});

it("trusted callers never wait", async () => {
  shareOf(TRUSTED_BLOCK).charge(1_000_000);
  await shareOf(TRUSTED_BLOCK).turn();
});

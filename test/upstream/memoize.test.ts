import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { memoize } from "../../src/upstream/memoize.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("reads once for all who ask within the time, and anew after it", async () => {
  const read = vi.fn(() => Promise.resolve(read.mock.calls.length));
  const recent = memoize(read, 1_000);
  expect(await Promise.all([recent(), recent()])).toEqual([1, 1]);
  vi.advanceTimersByTime(1_000);
  expect(await recent()).toBe(1);
  vi.advanceTimersByTime(1);
  expect(await recent()).toBe(2);
});

it("keeps no reading that has failed", async () => {
  const read = vi
    .fn<() => Promise<string>>()
    .mockRejectedValueOnce(new Error("down"))
    .mockResolvedValueOnce("up");
  const recent = memoize(read, 1_000);
  const [one, two] = [recent(), recent()];
  await expect(one).rejects.toThrow("down");
  await expect(two).rejects.toThrow("down");
  expect(await recent()).toBe("up");
  expect(read).toHaveBeenCalledTimes(2);
});

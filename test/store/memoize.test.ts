import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { memoize } from "../../src/store/memoize.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("shares one read between all calls within the time, and reads again after it", async () => {
  const read = vi.fn(() => Promise.resolve(read.mock.calls.length));
  const readMemoized = memoize(read, 1_000);
  expect(await Promise.all([readMemoized(), readMemoized()])).toEqual([1, 1]);
  vi.advanceTimersByTime(1_000);
  expect(await readMemoized()).toBe(1);
  vi.advanceTimersByTime(1);
  expect(await readMemoized()).toBe(2);
});

it("does not keep a failed read", async () => {
  const read = vi
    .fn<() => Promise<string>>()
    .mockRejectedValueOnce(new Error("down"))
    .mockResolvedValueOnce("up");
  const readMemoized = memoize(read, 1_000);
  const [one, two] = [readMemoized(), readMemoized()];
  await expect(one).rejects.toThrow("down");
  await expect(two).rejects.toThrow("down");
  expect(await readMemoized()).toBe("up");
  expect(read).toHaveBeenCalledTimes(2);
});

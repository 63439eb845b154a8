import { expect, it } from "vitest";
import { createFinalityTime } from "../../../src/chain/collect/finality-time.ts";

/** Looks at transactions that are final after each of these times; returns the looks in time. */
function look(time: ReturnType<typeof createFinalityTime>, finalMs: readonly number[]): number {
  let inTime = 0;
  for (const ms of finalMs) {
    const isTooEarly = time.ms() < ms;
    if (!isTooEarly) inTime++;
    time.learn({ isTooEarly });
  }
  return inTime;
}
/** The time from a transaction to the end of its slot, and until it is final. */
const inSlots = (slotMs: number) =>
  Array.from({ length: 1_000 }, (_, i) => ((i * 61) % 100) * (slotMs / 100) + 150);

it.each([50, 200, 400])(
  "with slots of %i ms, nine of ten looks are in time, and none is later than needed",
  (slotMs) => {
    const time = createFinalityTime({});
    look(time, inSlots(slotMs));
    const inTime = look(time, inSlots(slotMs));
    expect(inTime).toBeGreaterThan(850);
    expect(inTime).toBeLessThan(970);
    expect(time.ms()).toBeLessThan(1.1 * (slotMs + 150));
  },
);

it("transactions that land late delay the next first look by a second at most", () => {
  const time = createFinalityTime({});
  look(time, Array<number>(1_000).fill(30_000));
  expect(time.ms()).toBe(1_000);
});

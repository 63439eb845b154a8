/** Far above the chain's rate of about 2.5 slots a second. */
const MAX_PER_SECOND = 20;
/** Nodes behind one balancer differ, and a node that was behind catches up. */
const SLACK = 500;
/** How long a value counts. After a wrong one, right values count as impossible for this long at most. */
const MAX_AGE_MS = 60_000;

export type PlausibilityCheck = ReturnType<typeof createPlausibilityCheck>;

/**
 * Recognizes impossible values of a number that only grows, such as a slot or block height: those above the highest
 * possible value that an endpoint reported in the last minute, plus 500 and 20 for each second since. Without such a
 * report every value is possible.
 */
export function createPlausibilityCheck() {
  let highest = { value: 0, monotonicAt: -Infinity, wallAt: -Infinity };
  /** By both clocks: the monotonic one stands still while the machine is suspended, the other can be set back. */
  const age = () => Math.max(performance.now() - highest.monotonicAt, Date.now() - highest.wallAt);

  function isPossible(value: number): boolean {
    const ageMs = age();
    return ageMs > MAX_AGE_MS || value <= highest.value + SLACK + (ageMs / 1000) * MAX_PER_SECOND;
  }

  return {
    isPossible,

    /** Takes a value that an endpoint reports. Returns whether it is possible. */
    report(value: number): boolean {
      if (!isPossible(value)) return false;
      if (value >= highest.value || age() > MAX_AGE_MS)
        highest = { value, monotonicAt: performance.now(), wallAt: Date.now() };
      return true;
    },
  };
}

/**
 * Returns a clock in ms that is never set back and does not stand still. In each interval between two readings it
 * advances by the larger of what both system clocks say: the monotonic one stands still while the machine is suspended,
 * and the wall clock may be set back.
 */
export function createSteadyClock(): () => number {
  let time = 0;
  let monotonicAt = performance.now();
  let wallAt = Date.now();
  return () => {
    const monotonic = performance.now();
    const wall = Date.now();
    time += Math.max(0, monotonic - monotonicAt, wall - wallAt);
    monotonicAt = monotonic;
    wallAt = wall;
    return time;
  };
}

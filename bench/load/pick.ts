/** Half of the requests and fees go to this many accounts at the start of the list, so that callers collide. */
const BUSY = 10;

export const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;
export const pickBusy = <T>(list: readonly T[]): T => pick(Math.random() < 0.5 ? list.slice(0, BUSY) : list);

/** Waits for some milliseconds. Unlike the one of node:timers/promises, tests can skip its time. */
export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

import { vi } from "vitest";

/** Repeats an assertion until it holds; unlike `expect.poll`, also in hooks. */
export const eventually = (assertion: () => unknown) =>
  vi.waitFor(assertion, { timeout: 200_000, interval: 50 });

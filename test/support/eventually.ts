import { vi } from "vitest";

/** Repeats an assertion until it passes. Unlike `expect.poll` it also works in hooks. */
export const eventually = (assertion: () => unknown) =>
  vi.waitFor(assertion, { timeout: 200_000, interval: 20 });

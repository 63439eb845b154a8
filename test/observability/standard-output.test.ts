import { expect, it } from "vitest";
import { createLogger } from "../../src/observability/log.ts";

it("a logger opens standard output, which waits for the process's exit, only when it writes", () => {
  const listeners = process.listenerCount("exit");
  createLogger("info").debug("not written");
  expect(process.listenerCount("exit")).toBe(listeners);
});

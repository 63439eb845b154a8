import { expect, it } from "vitest";
import { createLogger } from "../../src/observability/log.ts";

it("all loggers of a process share one listener for its exit", () => {
  createLogger("silent");
  const listeners = process.listenerCount("exit");
  createLogger("silent");
  expect(process.listenerCount("exit")).toBe(listeners);
});

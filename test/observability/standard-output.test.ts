import { expect, it } from "vitest";
import { createLogger } from "../../src/observability/log.ts";

it("all loggers of a process share its standard output, which the first line opens", () => {
  const logLine = () => {
    createLogger("info").info("a line of a test");
    return process.listenerCount("exit");
  };
  createLogger("info");
  const before = process.listenerCount("exit");
  const opened = logLine();
  expect(opened).toBeGreaterThan(before);
  expect(logLine()).toBe(opened);
});

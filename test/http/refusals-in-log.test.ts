import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createRequestMetrics } from "../../src/http/metrics.ts";
import { createLogger } from "../../src/observability/log.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("refused requests are counted in one line a minute, while there are any", () => {
  const lines: unknown[] = [];
  const log = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const metrics = createRequestMetrics(new Registry(), log);
  for (let i = 0; i < 1_000; i++) metrics.refused();
  vi.advanceTimersByTime(59_999);
  expect(lines).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(lines).toEqual([expect.objectContaining({ level: 30, code: "RATE_LIMITED", refused: 1_000 })]);
  vi.advanceTimersByTime(600_000);
  expect(lines).toHaveLength(1);
  metrics.refused();
  vi.advanceTimersByTime(60_000);
  expect(lines[1]).toMatchObject({ refused: 1 });
});

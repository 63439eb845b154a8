import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createLogger } from "../../src/observability/log.ts";
import { createBudgetMetrics } from "../../src/fairness/budget-metrics.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("scrapes read the used part of a budget, which Redis has, at most once a second", async () => {
  const registry = new Registry();
  const metrics = createBudgetMetrics(registry, createLogger("silent"));
  let reads = 0;
  metrics.watch("fees", () => ++reads / 10);
  for (let i = 0; i < 20; i++) {
    expect(await registry.metrics()).toContain('tributary_budget_used_ratio{budget="fees"} 0.1\n');
    vi.advanceTimersByTime(50);
  }
  vi.advanceTimersByTime(1);
  expect(await registry.metrics()).toContain('tributary_budget_used_ratio{budget="fees"} 0.2\n');
});

it("the most frequent reason for refusals is logged once a minute, while there are any", () => {
  const lines: unknown[] = [];
  const log = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const metrics = createBudgetMetrics(new Registry(), log);
  for (let i = 0; i < 30; i++) metrics.refused("social_reads", "CALLER", 1);
  metrics.refused("social_reads", "SERVICE", 50);
  metrics.refused("social_calls", "SERVICE", 20);
  vi.advanceTimersByTime(59_999);
  expect(lines).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(lines).toEqual([
    expect.objectContaining({ level: 40, budget: "social_reads", scope: "SERVICE", refused: 50 }),
  ]);
  vi.advanceTimersByTime(600_000);
  expect(lines).toHaveLength(1);
  metrics.refused("social_calls", "SERVICE", 1);
  vi.advanceTimersByTime(60_000);
  expect(lines[1]).toMatchObject({ budget: "social_calls", refused: 1 });
});

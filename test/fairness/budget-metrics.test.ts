import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createBudgetMetrics } from "../../src/fairness/budget-metrics.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("scrapes read the part that is left of a budget, which Redis has, at most once a second", async () => {
  const registry = new Registry();
  const metrics = createBudgetMetrics(registry);
  let reads = 0;
  metrics.watch("fees", () => ++reads / 10);
  for (let i = 0; i < 20; i++) {
    expect(await registry.metrics()).toContain('tributary_budget_left_ratio{budget="fees"} 0.1\n');
    vi.advanceTimersByTime(50);
  }
  vi.advanceTimersByTime(1);
  expect(await registry.metrics()).toContain('tributary_budget_left_ratio{budget="fees"} 0.2\n');
});

import { Counter, Gauge, type Registry } from "@prometheus-io/client";
import { memoize } from "../store/memoize.ts";
import { SCOPES, type BudgetScope } from "./budget.ts";

/**
 * `social_reads`: accounts read from the social network. `social_calls`: calls that the network
 * allows. `fees`: transaction fees and rents. `small_fees`: the part of `fees` for collects that do
 * not pay for themselves. `chain_calls`: calls to the chain.
 */
const BUDGETS = ["social_reads", "social_calls", "fees", "small_fees", "chain_calls"] as const;
type BudgetName = (typeof BUDGETS)[number];

/** Returns the part of a budget that is left, 0 to 1. */
type LeftRatio = () => number | Promise<number>;

export type BudgetMetrics = ReturnType<typeof createBudgetMetrics>;

/** Scrapes read ratios from Redis, and `/metrics` has no rate limit. */
const READ_EVERY_MS = 1_000;

export function createBudgetMetrics(registry: Registry) {
  const budgets = new Map<BudgetName, LeftRatio>();
  const leftRatios = new Gauge({
    name: "tributary_budget_left_ratio",
    help: "Part that is left, 0 to 1, of what callers who take much may still take of a budget at once; at 0 they are refused, and the rest is for callers who take little. social_reads: accounts, of SOCIAL_READS_PER_HOUR. fees: fees and rents, of FEE_BUDGET_LAMPORTS_PER_HOUR. small_fees: those of collects that do not pay for themselves, of half of it. chain_calls: calls to the chain in about a minute, of those that RPC_CALLS_PER_SECOND allows for long. social_calls: of the calls that the social network allows until its next reset.",
    labelNames: ["budget"],
    registers: [registry],
    async collect() {
      await readLeftRatios();
    },
  });
  const readLeftRatios = memoize(async () => {
    const ratios = await Promise.all(
      [...budgets].map(async ([budget, leftRatio]) => [budget, await leftRatio()] as const),
    );
    for (const [budget, ratio] of ratios) leftRatios.set({ budget }, ratio);
    return Object.fromEntries(ratios);
  }, READ_EVERY_MS);
  const refusals = new Counter({
    name: "tributary_budget_refusals_total",
    help: "Accounts not read, or with budget fees, callers refused as payers of a collect, or with chain_calls, calls and batches' accounts not read. social_reads, fees and chain_calls: the budget is used up. social_calls: the queue is full, or the network allows too few calls. scope: CALLER (its share) or SERVICE (the whole budget).",
    labelNames: ["budget", "scope"],
    registers: [registry],
  });
  // Start at zero, so that Prometheus sees the first refusals as an increase.
  for (const budget of BUDGETS) for (const scope of SCOPES) refusals.inc({ budget, scope }, 0);

  return {
    /** For the operator: the part of each budget that is left, 0 to 1. */
    describe: readLeftRatios,
    /** Counts an account, a call or a payer of a collect, depending on the budget. */
    refused(budget: BudgetName, scope: BudgetScope): void {
      refusals.inc({ budget, scope });
    },
    /** Scrapes call `leftRatio` at most once a second. */
    watch(budget: BudgetName, leftRatio: LeftRatio): void {
      budgets.set(budget, leftRatio);
    },
  };
}

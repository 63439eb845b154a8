import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CollectError } from "../../../src/chain/collect-error.ts";
import { createFeeBudget, type Payers } from "../../../src/chain/collect/fee-budget.ts";
import { toLamports, type Lamports } from "../../../src/chain/lamports.ts";
import { createLogger } from "../../../src/observability/log.ts";
import { createBudgetMetrics } from "../../../src/upstream/budget/budget-metrics.ts";
import type { Redis } from "../../../src/upstream/redis.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";

const FEE = toLamports(5_000);
/** The smallest amount at which a collect for FEE pays for itself, and the highest at which it does not. */
const LARGE = toLamports(250_000);
const SMALL = toLamports(249_999);
const MINUTE = 60_000;

let registry: Registry;
function createBudget(settings: { fees?: number; lamports?: number; redis?: Redis } = {}) {
  registry = new Registry();
  const log = createLogger("silent");
  return createFeeBudget({
    feePayer: "payer",
    budgetLamportsPerHour: toLamports(settings.lamports ?? (settings.fees ?? 80) * 5_000),
    maxPriorityFee: toLamports(0),
    redis: settings.redis,
    metrics: createBudgetMetrics(registry, log),
    log,
  });
}
type Budget = ReturnType<typeof createBudget>;

const payersOf = (...callers: string[]): Payers => new Map(callers.map((caller) => [caller, undefined]));

/** "paid", or whose limit is reached. */
async function pay(budget: Budget, caller: string, moved = LARGE, fee = FEE): Promise<string> {
  return budget.reserve(fee, { moved, payers: payersOf(caller) }).then(
    () => "paid",
    (error: unknown) => (error as { failure: { scope: string } }).failure.scope,
  );
}
/** How many of `count` collects of a caller are paid. */
async function payMany(budget: Budget, count: number, caller: string, moved = LARGE): Promise<number> {
  let paid = 0;
  for (let i = 0; i < count; i++) if ((await pay(budget, caller, moved)) === "paid") paid++;
  return paid;
}

describe("the fee budget", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("pays an eighth of its fees for one caller, and all of them for eight", async () => {
    const budget = createBudget();
    expect(await payMany(budget, 11, "a")).toBe(10);
    expect(await pay(budget, "a")).toBe("CALLER");
    for (const caller of ["b", "c", "d", "e", "f", "g", "h"])
      expect(await payMany(budget, 11, caller)).toBe(10);
    expect(await pay(budget, "i")).toBe("SERVICE");
  });

  it("keeps half for collects that pay for themselves, whatever others collect from small vaults", async () => {
    const budget = createBudget();
    for (let i = 0; i < 1_000; i++) await payMany(budget, 2, `attacker${i}`, SMALL);
    expect(await pay(budget, "honest", SMALL)).toBe("SERVICE");
    expect(await payMany(budget, 11, "honest")).toBe(10);
    for (const caller of ["b", "c", "d"]) expect(await payMany(budget, 11, caller)).toBe(10);
    expect(await pay(budget, "e")).toBe("SERVICE");
  });

  it("lets one caller use a twentieth for small collects, so that nine leave some to others", async () => {
    const budget = createBudget();
    for (let i = 0; i < 9; i++) expect(await payMany(budget, 20, `attacker${i}`, SMALL)).toBe(4);
    expect(await pay(budget, "attacker0", SMALL)).toBe("CALLER");
    expect(await payMany(budget, 7, "attacker0")).toBe(6);
    expect(await payMany(budget, 5, "honest", SMALL)).toBe(4);
  });

  it("charges the first caller whose share is enough, and nobody else", async () => {
    const budget = createBudget();
    await payMany(budget, 10, "attacker");
    const payers = payersOf("attacker", "honest", "joiner");
    const reservation = await budget.reserve(FEE, { moved: LARGE, payers });
    expect([...payers.values()]).toEqual([
      { scope: "CALLER", retryAfterSeconds: 3_660 },
      undefined,
      undefined,
    ]);
    expect(await payMany(budget, 11, "joiner")).toBe(10);
    expect(await payMany(budget, 11, "honest")).toBe(9);
    reservation.release(FEE);
    expect(await payMany(budget, 2, "honest")).toBe(1);
  });

  it("gets back the part of a reservation that was not spent", async () => {
    const budget = createBudget();
    const { release } = await budget.reserve(toLamports(50_000), {
      moved: toLamports(10 ** 9),
      payers: payersOf("a"),
    });
    expect(await pay(budget, "a")).toBe("CALLER");
    release(toLamports(20_000));
    release(toLamports(5_000));
    expect(await payMany(budget, 6, "a")).toBe(5);
  });

  it("pays at least one transaction for a caller, however small the budget is", async () => {
    const budget = createBudget({ fees: 2 });
    expect([await pay(budget, "a"), await pay(budget, "a"), await pay(budget, "b")]).toEqual([
      "paid",
      "CALLER",
      "paid",
    ]);
  });

  it("names no time to try again for a fee that it never allows", async () => {
    const refusal = async (lamports: number, moved: Lamports) =>
      createBudget({ lamports })
        .reserve(FEE, { moved, payers: payersOf("a") })
        .catch((error: unknown) => (error as CollectError).failure);
    const never = { kind: "budget-spent", scope: "SERVICE" };
    expect(await refusal(4_999, LARGE)).toEqual({ ...never, isSmall: false });
    expect(await refusal(9_999, SMALL)).toEqual({ ...never, isSmall: true });
    // Rent makes a collect cost more than a caller's share.
    const withRent = createBudget({ lamports: 80_000 }).reserve(toLamports(10_001), {
      moved: toLamports(10 ** 9),
      payers: payersOf("a"),
    });
    await expect(withRent).rejects.toMatchObject({ failure: { ...never, isSmall: false } });
    const exposition = await registry.metrics();
    expect(exposition).toContain('tributary_budget_refusals_total{budget="fees",scope="SERVICE"} 1\n');
  });

  it("never refuses a caller with 20 collects of 0.02 SOL a minute at 5,100 lamports, for three hours", async () => {
    const budget = createBudget({ lamports: 50_000_000 });
    const heavy = [];
    for (let minute = 0; minute < 180; minute++) {
      for (let i = 0; i < 20; i++)
        heavy.push(await pay(budget, "heavy", toLamports(20_000_000), toLamports(5_100)));
      vi.advanceTimersByTime(MINUTE);
    }
    expect(new Set(heavy)).toEqual(new Set(["paid"]));
  });

  it("shows in the metrics what is used, and why callers were refused", async () => {
    const budget = createBudget();
    for (let i = 0; i < 5; i++) await payMany(budget, 5, `attacker${i}`, SMALL);
    for (let i = 0; i < 5; i++) await payMany(budget, 4, `more${i}`, SMALL);
    await pay(budget, "honest", SMALL);
    const exposition = await registry.metrics();
    expect(exposition).toContain('tributary_budget_used_ratio{budget="fees"} 0.5\n');
    expect(exposition).toContain('tributary_budget_used_ratio{budget="small_fees"} 1\n');
    expect(exposition).toContain('tributary_budget_refusals_total{budget="fees",scope="CALLER"} 5\n');
    expect(exposition).toContain('tributary_budget_refusals_total{budget="fees",scope="SERVICE"} 1\n');
  });
});

describe("a fee budget of 0", () => {
  it("is used up, according to the metrics", async () => {
    createBudget({ lamports: 0 });
    const exposition = await registry.metrics();
    expect(exposition).toContain('tributary_budget_used_ratio{budget="fees"} 1\n');
    expect(exposition).toContain('tributary_budget_used_ratio{budget="small_fees"} 1\n');
  });
});

describeWithRedis("the fee budget in Redis", () => {
  let redis: Redis;
  eachWithRedis((_, started) => {
    redis = started;
  });

  it("is shared by all replicas exactly, with each caller's share and the small collects' half", async () => {
    const replicas = Array.from({ length: 4 }, () => createBudget({ redis }));
    const count = async (collects: number, callerOf: (i: number) => string, moved = LARGE) => {
      const results = await Promise.all(
        Array.from({ length: collects }, (_, i) => pay(replicas[i % 4]!, callerOf(i), moved)),
      );
      return results.filter((result) => result === "paid").length;
    };
    expect(await count(50, () => "a", SMALL)).toBe(4);
    expect(await count(200, (i) => `attacker${i % 50}`, SMALL)).toBe(36);
    expect(await count(50, () => "b")).toBe(10);
    expect(await count(200, (i) => `honest${i % 50}`)).toBe(30);
  });

  it("is used up if it is 0", async () => {
    createBudget({ redis, lamports: 0 });
    expect(await registry.metrics()).toContain('tributary_budget_used_ratio{budget="fees"} 1\n');
  });
});

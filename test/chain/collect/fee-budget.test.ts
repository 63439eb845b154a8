import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CollectError } from "../../../src/chain/errors/collect-error.ts";
import { createFeeBudget } from "../../../src/chain/collect/fee-budget.ts";
import { toLamports, type Lamports } from "../../../src/chain/primitives/lamports.ts";
import { createBudgetMetrics } from "../../../src/fairness/budget-metrics.ts";
import type { Redis } from "../../../src/store/redis.ts";
import { describeWithRedis, eachWithRedis, redis } from "../../support/describe-with-redis.ts";

const FEE = toLamports(5_000);
/**
 * The smallest amount at which a collect for FEE pays for itself, and the highest at which it does
 * not.
 */
const LARGE = toLamports(250_000);
const SMALL = toLamports(249_999);
const NO_RENT = toLamports(0);

/**
 * The budget holds 400 fees, of which 200 are for callers who have collected nothing, 100 for one
 * block, and 200 for small collects, of which 20 for one block.
 */
const FEES_PER_HOUR = 2_400;

let registry: Registry;
function createBudget(
  settings: { lamports?: number; maxRentLamports?: number; redis?: Redis } = {},
) {
  registry = new Registry();
  return createFeeBudget({
    feePayer: "payer",
    feeBudgetLamportsPerHour: toLamports(settings.lamports ?? FEES_PER_HOUR * 5_000),
    maxPriorityFeeLamports: toLamports(0),
    maxRentLamports: toLamports(settings.maxRentLamports ?? 0),
    redis: settings.redis,
    metrics: createBudgetMetrics(registry),
  });
}
type Budget = ReturnType<typeof createBudget>;

/** "paid", or whose limit is reached. */
async function pay(
  budget: Budget,
  caller: string,
  moved = LARGE,
  { fee = FEE, rent = NO_RENT } = {},
): Promise<string> {
  const result = await budget.reserve({ fee, rent, moved }, [caller]);
  return typeof result === "function"
    ? "paid"
    : (result.get(caller)!.failure as unknown as { scope: string }).scope;
}
/** Reserves what is certain to be paid. */
async function reserve(
  budget: Budget,
  cost: Parameters<Budget["reserve"]>[0],
  blocks: readonly string[],
): Promise<(unused: Lamports) => void> {
  const result = await budget.reserve(cost, blocks);
  if (typeof result !== "function") throw result.get(blocks[0]!)!;
  return result;
}
/** How many of `count` collects of a caller are paid. */
async function payMany(
  budget: Budget,
  count: number,
  caller: string,
  moved = LARGE,
): Promise<number> {
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

  it("pays a part at once for one caller, and leaves half to callers who have collected nothing", async () => {
    const budget = createBudget();
    expect(await payMany(budget, 110, "a")).toBe(100);
    expect(await pay(budget, "a")).toBe("CALLER");
    expect([await payMany(budget, 90, "b"), await payMany(budget, 90, "c")]).toEqual([90, 10]);
    expect([await pay(budget, "c"), await pay(budget, "d"), await pay(budget, "d")]).toEqual([
      "CALLER",
      "paid",
      "CALLER",
    ]);
    for (let i = 0; i < 199; i++) await pay(budget, `other${i}`);
    expect(await pay(budget, "newcomer")).toBe("SERVICE");
  });

  it("keeps half for collects that pay for themselves, whatever others collect from small vaults", async () => {
    const budget = createBudget();
    for (let i = 0; i < 1_000; i++) await payMany(budget, 2, `attacker${i}`, SMALL);
    expect(await pay(budget, "honest", SMALL)).toBe("SERVICE");
    expect(await registry.metrics()).toContain(
      'tributary_budget_left_ratio{budget="small_fees"} 0\n',
    );
    expect(await pay(budget, "honest")).toBe("paid");
    for (let i = 0; i < 100; i++) expect(await pay(budget, `other${i}`)).toBe("paid");
  });

  it("lets one caller use a tenth of the small collects' half", async () => {
    const budget = createBudget();
    for (let i = 0; i < 4; i++) expect(await payMany(budget, 30, `attacker${i}`, SMALL)).toBe(20);
    expect(await pay(budget, "attacker0", SMALL)).toBe("CALLER");
    expect(await payMany(budget, 90, "attacker0")).toBe(80);
    expect(await payMany(budget, 5, "honest", SMALL)).toBe(5);
  });

  it("charges the first caller whose share is enough, and nobody else", async () => {
    const budget = createBudget();
    await payMany(budget, 100, "attacker");
    const blocks = ["attacker", "honest", "joiner"];
    const release = await reserve(budget, { fee: FEE, rent: NO_RENT, moved: LARGE }, blocks);
    await payMany(budget, 110, "others");
    expect([await pay(budget, "honest"), await pay(budget, "joiner")]).toEqual(["CALLER", "paid"]);
    release(FEE);
    expect(await pay(budget, "honest")).toBe("paid");
  });

  it("pays the highest rent for a caller at once, and leaves the other half to plain collects", async () => {
    const maxRentLamports = 900_000;
    const budget = createBudget({ maxRentLamports });
    const rent = { rent: toLamports(maxRentLamports) };
    const moved = toLamports(50 * maxRentLamports);
    expect([await pay(budget, "a", moved, rent), await pay(budget, "a", moved, rent)]).toEqual([
      "paid",
      "CALLER",
    ]);
    expect([await pay(budget, "b", moved, rent), await pay(budget, "c", moved, rent)]).toEqual([
      "paid",
      "CALLER",
    ]);
    for (let i = 0; i < 100; i++) expect(await pay(budget, `other${i}`)).toBe("paid");
  });

  it("names no time to try again for a fee that it never allows", async () => {
    const refusal = async (lamports: number, moved: Lamports) => {
      const cost = { fee: FEE, rent: NO_RENT, moved };
      const result = await createBudget({ lamports }).reserve(cost, ["a"]);
      return (result as ReadonlyMap<string, CollectError>).get("a")!.failure;
    };
    const never = { kind: "budget-spent", scope: "SERVICE" };
    expect(await refusal(9_999, LARGE)).toEqual({ ...never, isSmall: false });
    expect(await refusal(19_999, SMALL)).toEqual({ ...never, isSmall: true });
    const exposition = await registry.metrics();
    expect(exposition).toContain(
      'tributary_budget_refusals_total{budget="fees",scope="SERVICE"} 1\n',
    );
  });
});

describeWithRedis("the fee budget in Redis", () => {
  eachWithRedis();

  it("is shared by all replicas, with each caller's share", async () => {
    const lamports = 240 * 5_000;
    const replicas = [0, 1].map(() => createBudget({ redis, lamports }));
    const [one, other] = await Promise.all(replicas.map((each) => payMany(each, 20, "a")));
    expect(one! + other!).toBe(await payMany(createBudget({ lamports }), 20, "a"));
  });
});

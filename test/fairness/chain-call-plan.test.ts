import { setImmediate } from "node:timers/promises";
import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createRandom } from "../support/random.ts";
import { createBudgetMetrics } from "../../src/fairness/budget-metrics.ts";
import { TRUSTED_BLOCK, type Shortage } from "../../src/fairness/budget.ts";
import { createChainCallPlan, equalParts, type Use } from "../../src/fairness/chain-call-plan.ts";

const CALLS_PER_SECOND = 55;
const PER_MINUTE = 60 * CALLS_PER_SECOND;

class Refusal extends Error {
  readonly shortage: Required<Shortage>;
  constructor(shortage: Required<Shortage>) {
    super("refused");
    this.shortage = shortage;
  }
}

function createPlan({
  callsPerSecond = CALLS_PER_SECOND,
  replicas = 1,
  countReplicas = () => replicas,
} = {}) {
  const plan = createChainCallPlan({
    callsPerSecond,
    replicas: countReplicas,
    refuse: (shortage) => new Refusal(shortage),
    metrics: createBudgetMetrics(new Registry()),
  });
  const madeAt: number[] = [];
  const madeBy = new Map<string, number>();

  /** Makes one call for a block. */
  const call = (block: string, use: Use = "lookups", signal?: AbortSignal) =>
    plan.own({ use, parts: new Map([[block, 1]]), signal }, async () => {
      await plan.turn();
      plan.count();
      madeAt.push(performance.now());
      madeBy.set(block, (madeBy.get(block) ?? 0) + 1);
    });
  return { plan, call, madeAt, madeBy };
}

/** The most of these times in any span. */
function busiest(times: readonly number[], spanMs: number): number {
  let first = 0;
  let most = 0;
  times.forEach((at, i) => {
    while (times[first]! + spanMs <= at) first++;
    most = Math.max(most, i - first + 1);
  });
  return most;
}

/** Calls from each block in turn, ten more than the plan allows in each step, for so many seconds. */
async function attack(
  call: ReturnType<typeof createPlan>["call"],
  seconds: number,
  blocks: readonly string[],
  uses: readonly Use[] = ["lookups"],
): Promise<void> {
  let sent = 0;
  for (let step = 0; step < 10 * seconds; step++) {
    for (let i = 0; i < 15; i++, sent++)
      void call(blocks[sent % blocks.length]!, uses[sent % uses.length]).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(100);
    await setImmediate();
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the plan of calls to the chain", () => {
  it.each([
    [1, 1],
    [8, 1],
    [55, 20],
    [55, 1],
    [55, 4],
    [1_000, 2],
  ])("of %i calls per second gives each of %i replicas its part in any second", async (all, n) => {
    const { call, madeAt } = createPlan({ callsPerSecond: all, replicas: n });
    const blocks = Array.from({ length: 60 }, (_, i) => `192.0.${i}.0/24`);
    await attack(call, 15, blocks, ["lookups", "collects", "histories", "streams"]);
    // Each use may make one call at once, however small the part is.
    expect(busiest(madeAt, 1_000)).toBeLessThanOrEqual(Math.max(all / n, 4 + all / n / 2));
    expect(madeAt.length).toBeGreaterThan(Math.min(110, 0.45 * (all / n)) * 15 * 0.95);
  });

  it.each([
    ["a block", 1 / 4, ["192.0.2.0/24"]],
    ["an IPv6 /32", 1 / 4, Array.from({ length: 40 }, (_, i) => `2001:db8:${i}::/48`)],
    ["all trusted callers", 1 / 2, [TRUSTED_BLOCK]],
  ])("gives %s at most %f of it in any minute", async (_name, share, blocks) => {
    const { call, madeAt } = createPlan();
    await attack(call, 75, blocks, ["lookups", "collects", "histories"]);
    expect(busiest(madeAt, 60_000)).toBeLessThanOrEqual(share * PER_MINUTE);
    expect(madeAt.length).toBeGreaterThan(0.75 * share * PER_MINUTE);
  });

  it("makes honest calls within 3 s while strangers of 50 blocks take all they can", async () => {
    const { call } = createPlan();
    const waits: number[] = [];
    const measure = async (block: string, use: Use) => {
      const startedAt = performance.now();
      await call(block, use);
      waits.push(performance.now() - startedAt);
    };
    for (let i = 0; i < 10; i++)
      setTimeout(() => {
        for (const use of ["lookups", "collects"] as const)
          void measure(`198.51.${i}.0/24`, use).catch(() => undefined);
      }, 500 * i);
    const blocks = Array.from({ length: 50 }, (_, i) => `192.0.${i}.0/24`);
    await attack(call, 8, blocks, ["lookups", "collects", "histories"]);
    expect(waits).toHaveLength(20);
    expect(Math.max(...waits)).toBeLessThan(3_000);
  });

  it("names the seconds after which a block's next call is made", async () => {
    const { plan, call } = createPlan();
    await plan.own({ use: "collects", parts: new Map([["a", 1]]) }, () => {
      for (let i = 0; i < 300; i++) plan.count();
    });
    const { shortage } = (await call("a").catch((error: unknown) => error)) as Refusal;
    expect(shortage).toEqual({ scope: "CALLER", retryAfterSeconds: 8 });
    vi.advanceTimersByTime(7_000);
    await expect(call("a")).rejects.toThrow("refused");
    vi.advanceTimersByTime(1_000);
    await call("a");
  });

  it("refuses the block that has taken most when too many calls wait", async () => {
    const { call, madeBy } = createPlan();
    const refusals: Refusal[] = [];
    const keep = (error: unknown) => refusals.push(error as Refusal);
    for (let i = 0; i < 30; i++) void call("greedy").catch(keep);
    await vi.advanceTimersByTimeAsync(2_000);
    const greedy = Array.from({ length: 110 }, () => call("greedy").catch(keep));
    const others = Array.from({ length: 50 }, (_, i) => call(`other${i}`));
    await vi.advanceTimersByTimeAsync(10_000);
    await Promise.all([...others, ...greedy]);
    expect(refusals.length).toBeGreaterThanOrEqual(45);
    expect(refusals.map(({ shortage }) => shortage.scope)).toContain("SERVICE");
    expect(madeBy.get("other49")).toBe(1);
  });

  it("puts no block first because its collects ended without the calls that they expected", async () => {
    const { plan, call, madeBy } = createPlan();
    const parts = new Map([["slow", 1]]);
    const slow = Array.from({ length: 20 }, () =>
      plan.own({ use: "collects", parts }, () => vi.advanceTimersByTimeAsync(3_000), 10),
    );
    await Promise.all(slow);
    for (let i = 0; i < 40; i++) void call("slow", "collects");
    await vi.advanceTimersByTimeAsync(200);
    void call("other", "collects");
    await vi.advanceTimersByTimeAsync(100);
    expect(madeBy.get("other")).toBe(1);
    expect(madeBy.get("slow")).toBeLessThan(35);
  });

  it("lets a collect go on while strangers' collects begin, each from another block", async () => {
    const { plan } = createPlan();
    const collect = (block: string, calls: number) =>
      plan.own(
        { use: "collects", parts: new Map([[block, 1]]) },
        async () => {
          for (let made = 0; made < calls; made++) {
            await plan.turn();
            plan.count();
          }
        },
        10,
      );
    let blocks = 0;
    let isOver = false;
    const keepBeginning = async () => {
      while (!isOver) await collect(`stranger${blocks++}`, 3);
    };
    const strangers = Array.from({ length: 10 }, keepBeginning);
    await vi.advanceTimersByTimeAsync(1_000);
    let isDone = false;
    const honest = collect("honest", 8).then(() => (isDone = true));
    await vi.advanceTimersByTimeAsync(6_000);
    expect(isDone).toBe(true);
    isOver = true;
    await vi.advanceTimersByTimeAsync(10_000);
    await Promise.all([honest, ...strangers]);
  });

  it("counts calls that did not wait: their use waits for them, the other uses do not", async () => {
    const { plan, call, madeAt } = createPlan();
    await plan.own({ use: "collects", parts: new Map([["a", 1]]) }, () => {
      for (let i = 0; i < 100; i++) plan.count();
    });
    const [collect, lookup] = [call("b", "collects"), call("b", "lookups")];
    await lookup;
    expect(madeAt).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(madeAt).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(9_000);
    await collect;
  });

  it("counts what goes on after an owner's code has ended as the service's", async () => {
    const { plan, call } = createPlan();
    await plan.own({ use: "collects", parts: new Map([["a", 1]]) }, () => {
      setTimeout(() => {
        for (let i = 0; i < 300; i++) plan.count();
      }, 1_000);
    });
    await vi.advanceTimersByTimeAsync(20_000);
    await call("a");
  });

  it("holds for random owners who leave, and replicas that come and go", async () => {
    const random = createRandom(1);
    let replicas = 1;
    const { plan, call, madeAt } = createPlan({ countReplicas: () => replicas });
    const blocks = [
      ...Array.from({ length: 6 }, (_, i) => `192.0.${i}.0/24`),
      ...Array.from({ length: 20 }, (_, i) => `2001:db8:${i}::/48`),
      TRUSTED_BLOCK,
    ];
    const madeBy = new Map<string, number[]>();
    let running = 0;
    /** A collect of up to two blocks, whose caller may leave at any time. */
    async function collect(): Promise<void> {
      const owners = [random.pick(blocks), random.pick(blocks)];
      const leaving = new AbortController();
      setTimeout(() => {
        leaving.abort(new Error("left"));
      }, random.below(20_000));
      running++;
      const use = random.pick(["lookups", "collects", "histories"] as const);
      const owner = { use, parts: equalParts(owners), signal: leaving.signal };
      const run = async () => {
        for (let left = random.below(12); left > 0; left--) {
          await plan.turn();
          if (random.isChosen(0.1)) throw new Error("not made");
          plan.count();
          madeAt.push(performance.now());
          if (owners[0] === owners[1])
            madeBy.set(owners[0]!, [...(madeBy.get(owners[0]!) ?? []), performance.now()]);
        }
      };
      await plan.own(owner, run, random.pick([0, 10])).catch(() => undefined);
      running--;
    }
    for (let step = 0; step < 1_200; step++) {
      for (let i = random.below(6); i > 0; i--) void collect();
      if (random.isChosen(0.02)) replicas = 1 + random.below(4);
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(busiest(madeAt, 1_000)).toBeLessThanOrEqual(CALLS_PER_SECOND);
    for (const [block, times] of madeBy)
      expect(busiest(times, 60_000)).toBeLessThanOrEqual(
        (block === TRUSTED_BLOCK ? 1 / 2 : 1 / 4) * PER_MINUTE,
      );
    await vi.advanceTimersByTimeAsync(60_000);
    expect(running).toBe(0);
    // Nothing is taken any more: a burst is made at once.
    replicas = 1;
    madeAt.length = 0;
    for (let i = 0; i < 5; i++) await call("203.0.113.0/24", "collects");
    expect(madeAt).toHaveLength(5);
  });
});

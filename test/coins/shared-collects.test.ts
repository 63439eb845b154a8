import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { atOnce } from "../support/client.ts";
import { createSandboxCollector, type SandboxCollector } from "../support/collector-on-sandbox.ts";
import { replicas, withReplicas } from "../support/fixtures.ts";
import { hold, isMethod, startTestSandbox, type TestSandbox, isLook } from "../support/sandbox.ts";
import { monotonicNow } from "../../src/time/monotonic.ts";

describe("within one process", () => {
  let sandbox: TestSandbox;
  let collector: SandboxCollector;
  beforeEach(async () => {
    sandbox = await startTestSandbox({ feesOnCoins: true });
    collector = createSandboxCollector(sandbox);
  });
  afterEach(() => sandbox.close());

  /** Collects, naming the launcher's coins at these positions. */
  const collect = (...positions: number[]) => {
    const account = sandbox.account("launcher");
    const coins = positions.map((position) => account.coins[position]!);
    return collector.collector.collect({ account, coins }, "caller", monotonicNow());
  };
  /** Holds the first collect until the others have joined it. */
  async function whileFirstIsHeld<T>(
    first: () => Promise<T>,
    others: () => Promise<T>[],
  ): Promise<T[]> {
    const callsOf = (method: string) => sandbox.rpc.calls.filter(isMethod(method)).length;
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const collects = [first()];
    await expect.poll(() => callsOf("simulateTransaction")).toBe(1);
    const reads = callsOf("getMultipleAccounts");
    collects.push(...others());
    // Their read is answered before the simulation.
    await expect.poll(() => callsOf("getMultipleAccounts")).toBeGreaterThan(reads);
    release();
    return Promise.all(collects);
  }
  const collected = (lamports: bigint) => ({ kind: "collected", collected: lamports });

  it("callers whose coins a collect covers share its transaction", async () => {
    const outcomes = await whileFirstIsHeld(
      () => collect(0, 1),
      () => [collect(), collect(1), collect(1, 0)],
    );
    expect(outcomes[0]).toMatchObject(collected(8_750_000_000n));
    for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("callers who name other coins have collects of their own, or one of another that has their coin", async () => {
    const [first, second, third, fourth] = await whileFirstIsHeld(
      () => collect(),
      () => [collect(0), collect(1), collect(1, 2)],
    );
    expect(first).toMatchObject(collected(1_250_000_000n));
    expect(second).toMatchObject(collected(5_000_000_000n));
    expect(third).toMatchObject({ kind: "collected" });
    expect(fourth).toMatchObject({ ...third, remaining: expect.any(Array) });
    expect(sandbox.landedCollects()).toHaveLength(3);
  });

  it("a caller whose other coins have nothing to move gets the result of the collect it joined", async () => {
    const { coins } = sandbox.account("prolific");
    const account = sandbox.account("launcher");
    const [first, second] = await whileFirstIsHeld(
      () => collect(),
      () => [
        collector.collector.collect(
          { account, coins: coins.slice(0, 1) },
          "caller",
          monotonicNow(),
        ),
      ],
    );
    expect(first).toMatchObject(collected(1_250_000_000n));
    expect(second).toEqual(first);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });
});

const itWithReplicas = withReplicas();

describe("two replicas", () => {
  const it = itWithReplicas;
  it("collect the coins of a caller who followed the transaction of the other replica", async () => {
    const { sandbox } = replicas;
    const { id, coins } = sandbox.account("launcher");
    const mints = coins.map(({ mint }) => mint);
    const release = hold(sandbox.rpc, isLook);
    const first = replicas.at(0).collect(id);
    await expect.poll(() => sandbox.landedCollectsOf("launcher").length).toBe(1);
    const second = replicas.at(1).collect(id, {}, mints);
    await replicas.takeUp();
    release();
    expect((await first).body).toMatchObject({ success: true, collected: "1.2500" });
    expect((await second).body).toMatchObject({
      success: true,
      collected: "8.5000",
      remaining: "0.0000",
    });
    expect(sandbox.landedCollectsOf("launcher")).toHaveLength(2);
  });

  it("send one transaction for 20 concurrent collects that name the same coins", async () => {
    const { sandbox } = replicas;
    const { id, coins } = sandbox.account("variety");
    const mints = coins.map(({ mint }) => mint);
    const answers = await atOnce(20, (i) => replicas.at(i).collect(id, {}, mints));
    expect(sandbox.landedCollectsOf("variety")).toHaveLength(1);
    for (const { body } of answers)
      expect([body.collected, body.error]).toBeOneOf([
        ["0.8500", undefined],
        // Asked after the collect had ended.
        ["0.0000", "NOTHING_TO_COLLECT"],
      ]);
    expect(answers.filter(({ body }) => body.success).length).toBeGreaterThan(0);
  });
});

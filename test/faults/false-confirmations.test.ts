import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Redis } from "../../src/store/redis.ts";
import { createSandboxCollector, type SandboxCollector } from "../support/collector-on-sandbox.ts";
import { describeWithRedis, eachWithRedis } from "../support/describe-with-redis.ts";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import {
  hold,
  isMethod,
  SHORT_AGREEMENT,
  startTestSandbox,
  type TestSandbox,
} from "../support/sandbox.ts";

const ALL_FEES = { kind: "collected", collected: 3_100_000_000n, newBalance: 8_300_000_000n };
const REFUSED = { status: 429, body: "" };

let sandbox: TestSandbox;
let liar: LyingEndpoint;
/** Prefers an endpoint that lies to an honest one. */
let collector: SandboxCollector;

async function start(redis?: Redis) {
  sandbox = await startTestSandbox();
  liar = await startLyingEndpoint(sandbox);
  collector = createSandboxCollector(sandbox, {
    rpcs: [liar, sandbox.rpc],
    waits: SHORT_AGREEMENT,
    ...(redis ? { redis } : {}),
  });
}
afterEach(async () => {
  liar.stopLying();
  sandbox.rpc.faults.clear();
  sandbox.secondRpc.faults.clear();
  await collector.settled();
  await Promise.all([sandbox.close(), liar.close()]);
});

/**
 * The first endpoint drops transactions, and says that each is final, with this error or none.
 */
function claimFinal(err: object | null = null): void {
  liar.lie({
    sendTransaction: () => "dropped",
    getSignatureStatuses(tellTruth) {
      const { context, value } = tellTruth();
      // The newest finalized slot: reads have to reach it.
      const status = {
        slot: context.slot - 1,
        err,
        confirmations: null,
        confirmationStatus: "finalized",
      };
      return { context, value: value.map(() => status) };
    },
  });
}
const honestSends = () => sandbox.rpc.calls.filter(isMethod("sendTransaction")).length;

describe("a transaction that only one of two endpoints calls final", () => {
  beforeEach(() => start());

  it.each([
    ["successful", null],
    ["failed", { InstructionError: [1, { Custom: 1 }] }],
  ])("and %s is sent until it lands", async (_, err) => {
    claimFinal(err);
    sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), times: 3, then: "reset" });
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("has an unknown outcome in the end, and nothing backs off", async () => {
    claimFinal({ InstructionError: [1, { Custom: 1 }] });
    const lift = sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: "reset" });
    const outcome = collector.collect("creator");
    await expect.poll(honestSends).toBeGreaterThan(3);
    sandbox.chain.advanceSlots(250);
    expect(await outcome).toMatchObject({ kind: "unknown" });
    expect(sandbox.landedCollects()).toEqual([]);
    lift();
    liar.stopLying();
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
  });
});

describeWithRedis("with replicas, a transaction that only one of two endpoints calls final", () => {
  let shared: Redis;
  eachWithRedis((_, redis) => {
    shared = redis;
  });
  beforeEach(() => start(shared));

  it("stays in its lock, where another replica finds it", async () => {
    claimFinal();
    sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: "reset" });
    const outcome = collector.collect("creator");
    await expect.poll(honestSends).toBeGreaterThan(2);
    const other = createSandboxCollector(sandbox, { redis: shared, rpcs: [sandbox.secondRpc] });
    expect(await other.collect("creator")).toMatchObject(ALL_FEES);
    expect(await outcome).toMatchObject(ALL_FEES);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("is sent by a replica that takes it over", async () => {
    const dying = createSandboxCollector(sandbox, { redis: shared, rpcs: [sandbox.secondRpc] });
    const lift = sandbox.secondRpc.faults.add({
      when: isMethod("sendTransaction"),
      then: REFUSED,
    });
    const first = dying.collect("creator");
    await expect.poll(() => dying.openSignatures()).toHaveLength(1);
    const [signature] = dying.openSignatures();
    claimFinal();
    const release = hold(sandbox.rpc, isMethod("sendTransaction"));
    const outcome = collector.collect("creator");
    // Both endpoints show the slot before the transaction lands.
    for (const { calls } of [sandbox.rpc, liar])
      await expect.poll(() => calls.some(isMethod("getSlot"))).toBe(true);
    release();
    // Who may have asked after the landing hears of it as the last collect.
    const answer = await outcome;
    const collect = answer.kind === "nothing" ? answer.lastCollect : answer;
    expect({ ...collect, kind: "collected" }).toMatchObject({ ...ALL_FEES, signature });
    expect(sandbox.landedCollects()).toHaveLength(1);
    lift();
    await first;
  });
});

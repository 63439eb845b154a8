import { afterEach, beforeEach, expect } from "vitest";
import type { Redis } from "../../src/store/redis.ts";
import { createSandboxCollector, type SandboxCollector } from "../support/collector-on-sandbox.ts";
import { describeWithRedis, eachWithRedis, redis } from "../support/describe-with-redis.ts";
import { chain, sandbox, withNewSandbox } from "../support/fixtures.ts";
import { isLook, isMethod } from "../support/sandbox.ts";

const ALL_FEES = {
  kind: "collected",
  collected: 3_100_000_000n,
  newBalance: 8_300_000_000n,
  remaining: [],
};
const REFUSED = { status: 429, body: "" };

const it = withNewSandbox();
/**
 * A replica that stops during a test, with an endpoint of its own; and the replica that its caller
 * asks next.
 */
let dying: SandboxCollector;
let living: SandboxCollector;

describeWithRedis("a transaction that a replica stored before it stopped", () => {
  eachWithRedis();
  beforeEach(() => {
    dying = createSandboxCollector(sandbox, { redis, rpcs: [sandbox.secondRpc] });
    living = createSandboxCollector(sandbox, { redis });
  });
  afterEach(async () => {
    sandbox.secondRpc.faults.clear();
    await dying.settled();
  });

  const isConfirmed = () =>
    expect.poll(() => {
      const [landed] = sandbox.landedCollects();
      return landed !== undefined && landed.slot <= chain.slot("finalized");
    });
  const addFees = (lamports: bigint) => {
    const { creatorVault } = sandbox.account("creator");
    chain.setBalance(creatorVault, chain.balance(creatorVault) + lamports);
  };
  const secondsAgo = (seconds: number) => Math.floor(Date.now() / 1000) - seconds;

  /** A replica sends a transaction, which lands, and stops before it learns so. */
  async function leaveLanded(blockTime: number | null = secondsAgo(0)) {
    sandbox.secondRpc.faults.add({ when: isLook, then: REFUSED });
    void dying.collect("creator");
    await isConfirmed().toBe(true);
    const [landed] = sandbox.landedCollects();
    Object.assign(landed!, { blockTime });
    return landed!;
  }

  it("and that landed before a request is not its result: its new fees are collected", async () => {
    const earlier = await leaveLanded();
    addFees(500_000_000n);
    const outcome = await living.collect("creator");
    expect(outcome).toMatchObject({
      kind: "collected",
      collected: 500_000_000n,
      newBalance: 8_800_000_000n,
    });
    expect(outcome).not.toHaveProperty("signature", earlier.signature);
    expect(sandbox.landedCollects()).toHaveLength(2);
  });

  /** What a caller hears who asks after a transaction of all fees has landed. */
  const nothingAfter = (signature: string, blockTime: number | null) => ({
    kind: "nothing",
    lastCollect: {
      collected: 3_100_000_000n,
      newBalance: 8_300_000_000n,
      signature,
      at: new Date(1000 * blockTime!),
    },
  });

  it("and that landed before a request is no success of it, but the account's last collect", async () => {
    const { signature, blockTime } = await leaveLanded();
    expect(await living.collect("creator")).toEqual(nothingAfter(signature, blockTime));
    // Also once the lock is released.
    expect(await living.collect("creator")).toEqual(nothingAfter(signature, blockTime));
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it.each([
    ["more than an hour ago", () => secondsAgo(3_601)],
    ["at an unknown time", () => null],
  ])("and that landed %s is nobody's result", async (_, blockTime) => {
    await leaveLanded(blockTime());
    expect(await living.collect("creator")).toEqual({ kind: "nothing" });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("and that failed before a request is not its result", async () => {
    Object.assign(await leaveLanded(), { err: { InstructionError: [1, "InvalidArgument"] } });
    expect(await living.collect("creator")).toEqual({ kind: "nothing" });
    addFees(500_000_000n);
    expect(await living.collect("creator")).toMatchObject({
      kind: "collected",
      collected: 500_000_000n,
    });
  });

  it("and that has not landed is followed, and is the result of the request", async () => {
    sandbox.secondRpc.faults.add({ when: isMethod("sendTransaction"), then: REFUSED });
    void dying.collect("creator");
    await expect.poll(() => dying.openSignatures()).toHaveLength(1);
    const [signature] = dying.openSignatures();
    expect(await living.collect("creator")).toEqual({ ...ALL_FEES, signature });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("and that can no longer land does not fail a caller who never requested it: a new one is signed", async () => {
    const { faults } = sandbox.secondRpc;
    faults.add({ when: isMethod("sendTransaction"), then: REFUSED });
    const first = dying.collect("creator");
    await expect.poll(() => dying.openSignatures()).toHaveLength(1);
    const [signature] = dying.openSignatures();
    faults.clear();
    faults.add({ then: REFUSED });
    chain.advanceSlots(300);

    expect(await living.collect("creator")).toMatchObject(ALL_FEES);
    expect(sandbox.landedCollects().map((landed) => landed.signature)).not.toContain(signature);
    expect(sandbox.landedCollects()).toHaveLength(1);
    // The first replica returns: it reports the truth, and leaves the next lock alone.
    faults.clear();
    expect(await first).toMatchObject({ kind: "expired", signature });
  });

  it("is left in its lock and named when its status cannot be read", async () => {
    const { signature, blockTime } = await leaveLanded();
    sandbox.rpc.faults.add({ when: isLook, then: REFUSED });
    expect(await living.collectBriefly("creator")).toEqual({ kind: "still-running", signature });
    sandbox.rpc.faults.clear();
    expect(await living.collect("creator")).toEqual(nothingAfter(signature, blockTime));
  });
});

describeWithRedis("a replica that stops while Redis is unreachable", () => {
  eachWithRedis();
  it("leaves a lock that gives its old transaction to nobody", async () => {
    // What waits for Redis is lost when the replica stops.
    const unreachable: Redis = { ...redis, runLater: () => undefined };
    const stopping = createSandboxCollector(sandbox, { redis: unreachable });
    expect(await stopping.collect("creator")).toMatchObject(ALL_FEES);

    const { creatorVault } = sandbox.account("creator");
    chain.setBalance(creatorVault, chain.balance(creatorVault) + 500_000_000n);
    const outcome = await createSandboxCollector(sandbox, { redis }).collect("creator");
    expect(outcome).toMatchObject({ kind: "collected", collected: 500_000_000n });
  });
});

import { afterEach, beforeEach, describe, expect } from "vitest";
import { LAUNCHPAD_FEES_PROGRAM_ID } from "../../../src/chain/launchpad/program-ids.ts";
import type { CollectOutcome } from "../../../src/chain/collect/collector.ts";
import {
  createSandboxCollector,
  type ChainRpc,
  type SandboxCollector,
} from "../../support/collector-on-sandbox.ts";
import {
  describeWithRedis,
  eachWithRedis,
  redis,
  server,
} from "../../support/describe-with-redis.ts";
import { chain, sandbox, withNewSandbox } from "../../support/fixtures.ts";
import type { Redis } from "../../../src/store/redis.ts";
import { rpcError } from "../../support/rpc-answers.ts";
import { hold, isMethod, NEVER_MS, isLook } from "../../support/sandbox.ts";

const it = withNewSandbox();
let rpc: ChainRpc;
let collector: SandboxCollector;
beforeEach(() => {
  ({ rpc } = sandbox);
  collector = createSandboxCollector(sandbox, { waits: { resendMs: NEVER_MS } });
});
afterEach(() => {
  rpc.faults.clear();
});

const FEES = 1_000_000_000n;
const collected = { kind: "collected", collected: FEES };
const artists = (count: number) =>
  Array.from({ length: count }, (_, i) => `artist${String(i + 1).padStart(3, "0")}`);
const callsOf = (...methods: string[]) => rpc.calls.filter(isMethod(...methods)).length;

/** Gives each account the same fees. */
function fill(handles: readonly string[]): void {
  for (const handle of handles)
    chain.setBalance(sandbox.account(handle).creatorVault, chain.rentExemptMinimum(0) + FEES);
}
/** Makes an account receive nothing: what would arrive is below the rent-exempt minimum. */
function spoil(handle: string): void {
  const { address, creatorVault } = sandbox.account(handle);
  chain.setBalance(address, 0n);
  chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 100_000n);
}
/** Its outcome. */
const nothing = { kind: "nothing", missing: expect.any(BigInt) };
const setOwner = (handle: string, owner: string) => {
  const { address } = sandbox.account(handle);
  chain.setAccount(address, { lamports: FEES, owner, data: new Uint8Array() });
};
/** Makes an account fail its transactions: the launch platform pays no sharing config so. */
const fail = (handle: string) => {
  setOwner(handle, LAUNCHPAD_FEES_PROGRAM_ID);
};
/** Its outcome. */
const failed = expect.objectContaining({ kind: "simulation-failed" });
/** Collects at once, each from a caller of its own. */
const collectAll = (handles: readonly string[]) =>
  Promise.all(handles.map((handle) => collector.collect(handle, `caller of ${handle}`)));
/**
 * Fills the accounts and collects them at once; holds their shared transaction until `release`,
 * before it is signed.
 */
async function collectHeld(handles: readonly string[], collectTogether = collectAll) {
  fill(handles);
  const release = hold(rpc, isMethod("getLatestBlockhash"));
  const all = collectTogether(handles);
  await expect.poll(() => callsOf("getLatestBlockhash")).toBe(1);
  await expect.poll(() => callsOf("simulateTransaction")).toBe(1);
  return { release, all };
}
const signaturesOf = (outcomes: readonly { readonly kind: string }[]) =>
  new Set(
    outcomes.flatMap((outcome) =>
      outcome.kind === "collected"
        ? (outcome as CollectOutcome & { kind: "collected" }).signature
        : [],
    ),
  );

describe("collects of different accounts at the same moment", () => {
  it("share one transaction and one call of each kind, and each has its own amount", async () => {
    const handles = artists(6);
    fill(handles);
    chain.setBalance(
      sandbox.account("artist001").creatorVault,
      chain.rentExemptMinimum(0) + 7_000_000n,
    );
    // Late enough that the first look finds the transaction.
    collector = createSandboxCollector(sandbox, {
      waits: { resendMs: NEVER_MS, finalityMs: 500 },
    });
    await collector.collect("creator");
    rpc.calls.length = 0;
    const [first, ...others] = await collectAll(handles);
    expect(first).toMatchObject({ kind: "collected", collected: 7_000_000n });
    expect(others).toMatchObject(Array(5).fill(collected));
    expect(signaturesOf([first!, ...others]).size).toBe(1);
    expect(sandbox.landedCollects()).toHaveLength(2);
    for (const method of [
      "simulateTransaction",
      "getRecentPrioritizationFees",
      "sendTransaction",
      "getTransaction",
    ])
      expect([method, callsOf(method)]).toEqual([method, 1]);
  });

  it("split the fee between their callers' shares of the budget", async () => {
    // Each caller may spend 6,000 at once, and a transaction costs 5,000.
    collector = createSandboxCollector(sandbox, {
      env: { FEE_BUDGET_LAMPORTS_PER_HOUR: "60000", MAX_PRIORITY_FEE_LAMPORTS: "0" },
    });
    const handles = artists(22);
    fill(handles);
    for (const some of [handles.slice(0, 11), handles.slice(11)])
      expect(
        await Promise.all(
          some.map((handle) =>
            collector.collect(handle, some.indexOf(handle) % 2 ? "one" : "other"),
          ),
        ),
      ).toMatchObject(Array(11).fill(collected));
  });

  it("go on without one whose caller has used its share of the budget", async () => {
    collector = createSandboxCollector(sandbox, {
      env: { FEE_BUDGET_LAMPORTS_PER_HOUR: "40000", MAX_PRIORITY_FEE_LAMPORTS: "0" },
    });
    const [spent, refused, ...others] = artists(6) as [string, string, ...string[]];
    fill([spent, refused, ...others]);
    expect(await collector.collect(spent, "attacker")).toMatchObject(collected);
    const attack = collector.collect(refused, "attacker");
    expect(await collectAll(others)).toMatchObject(Array(4).fill(collected));
    expect(await attack).toMatchObject({ kind: "budget-spent", scope: "CALLER" });
    expect(sandbox.landedCollects()).toHaveLength(2);
  });
});

describe("a collect that cannot succeed", () => {
  it.each([
    ["receive nothing", "two", 2, spoil, nothing],
    ["fail the simulation", "three", 3, fail, failed],
  ])(
    "costs the others, if five %s, at most %s simulations",
    async (_, __, simulations, harm, result) => {
      const handles = artists(9);
      const bad = handles.slice(0, 5);
      const good = handles.slice(5);
      fill(handles);
      bad.forEach(harm);
      await collector.collect("creator");
      rpc.calls.length = 0;
      const attack = collectAll(bad);
      expect(await collectAll(good)).toMatchObject(Array(4).fill(collected));
      expect(await attack).toEqual(Array(5).fill(result));
      const shared = rpc.calls
        .filter(isMethod("simulateTransaction"))
        .filter(({ params }) => (params[1] as any).accounts.addresses.length > 2);
      expect(shared).toHaveLength(simulations);
    },
  );

  it("in a transaction that fails on the chain makes each of the others go on alone", async () => {
    const handles = artists(6);
    const { release, all } = await collectHeld(handles);
    fail("artist003");
    release();
    const outcomes = await all;
    const good = outcomes.filter((_, i) => i !== 2);
    expect(good).toMatchObject(Array(5).fill(collected));
    expect(signaturesOf(good).size).toBe(5);
    expect(outcomes[2]).toEqual(failed);
    const [together, ...others] = sandbox.landedCollects();
    expect(together!.err).toEqual({ InstructionError: [expect.any(Number), { Custom: 6050 }] });
    expect(together!.version).toBe(1);
    expect(others.map(({ err }) => err)).toEqual(Array(5).fill(null));
  });
});

/** The client retries a node that is behind, so this fault blocks a call until it is removed. */
const BEHIND = rpcError({ code: -32005 });

describeWithRedis("a transaction that accounts share, at two replicas", () => {
  let other: SandboxCollector;
  let whenReleased: Promise<unknown> | undefined;
  /** The keys of the calls to Redis since it is held. */
  let heldKeys = "";
  eachWithRedis();
  beforeEach(() => {
    whenReleased = undefined;
    const heldRedis: Redis = {
      ...redis,
      async run(script, call) {
        heldKeys += String(script.toArguments(call).keys);
        await whenReleased;
        return redis.run(script, call);
      },
    };
    collector = createSandboxCollector(sandbox, { redis: heldRedis });
    other = createSandboxCollector(sandbox, { redis, rpcs: [sandbox.secondRpc] });
  });
  /**
   * Collects at once. Redis answers for all claims at the same moment, so the collects share a
   * transaction.
   */
  async function collectTogether(handles: readonly string[]) {
    const { promise, resolve: release } = Promise.withResolvers<undefined>();
    whenReleased = promise;
    heldKeys = "";
    const all = collectAll(handles);
    const haveAsked = () =>
      handles.every((handle) => heldKeys.includes(sandbox.account(handle).address));
    await expect.poll(haveAsked).toBe(true);
    release(undefined);
    return all;
  }
  const sentBy = ({ calls }: ChainRpc) =>
    new Set(calls.filter(isMethod("sendTransaction")).map(({ params }) => params[0]));

  it("is sent and reported by the other when its signer cannot send it, each account with its own amount", async () => {
    const handles = artists(3);
    fill(handles);
    chain.setBalance(
      sandbox.account("artist002").creatorVault,
      chain.rentExemptMinimum(0) + 7_000_000n,
    );
    const lift = rpc.faults.add({
      when: isMethod("sendTransaction", "getSignatureStatuses"),
      then: BEHIND,
    });
    // Until its transaction ends, other collects gather.
    const another = collector.collect("artist009");
    await expect.poll(() => callsOf("sendTransaction")).toBeGreaterThan(0);
    const all = collectTogether(handles);
    await expect.poll(() => sentBy(rpc).size).toBe(2);
    const { secondRpc } = sandbox;
    const release = hold(secondRpc, isMethod("sendTransaction"));
    const others = handles.map((handle) => other.collect(handle));
    // Each reads its account before the transaction lands.
    const reads = () => JSON.stringify(secondRpc.calls.filter(isMethod("getMultipleAccounts")));
    const haveRead = () =>
      handles.every((handle) => reads().includes(sandbox.account(handle).creatorVault));
    await expect.poll(haveRead).toBe(true);
    const slotReads = () => secondRpc.calls.filter(isMethod("getSlot")).length;
    await expect.poll(slotReads).toBeGreaterThanOrEqual(handles.length);
    release();
    const outcomes = await Promise.all(others);
    expect(outcomes).toMatchObject([
      collected,
      { kind: "collected", collected: 7_000_000n },
      collected,
    ]);
    expect(signaturesOf(outcomes).size).toBe(1);
    lift();
    expect(await all).toEqual(outcomes);
    expect(sentBy(sandbox.secondRpc).size).toBe(1);
    expect(new Set(handles.flatMap(sandbox.landedCollectsOf)).size).toBe(1);
    await another;
  });

  it("is sent although one account's lock was lost, and that account hears of the other replica's", async () => {
    const handles = artists(4);
    const { release, all } = await collectHeld(handles, collectTogether);
    const id = `${collector.feePayer}:${sandbox.account("artist002").address}`;
    await server.command("DEL", `tributary:v3:claim:{${id}}`, `tributary:collect:${id}`);
    const lift = sandbox.secondRpc.faults.add({
      when: isLook,
      then: BEHIND,
    });
    const taken = other.collect("artist002");
    await expect.poll(() => sentBy(sandbox.secondRpc).size).toBe(1);
    release();
    const outcomes = await all;
    lift();
    const [first, second, third, fourth] = outcomes;
    expect([first, third, fourth]).toMatchObject(Array(3).fill(collected));
    // Nothing proves that the other replica's transaction landed after the request.
    const { signature } = (await taken) as any;
    expect(second).toMatchObject({ kind: "nothing", lastCollect: { signature } });
    expect(signaturesOf([first!, third!, fourth!])).not.toContain(signature);
    for (const handle of ["artist001", "artist003", "artist004"])
      expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });
});

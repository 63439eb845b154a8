import { afterEach, beforeEach, describe, expect, vi } from "vitest";
import { CollectError } from "../../../src/chain/errors/collect-error.ts";
import {
  createSandboxCollector,
  type SandboxCollector,
} from "../../support/collector-on-sandbox.ts";
import { setPaused } from "../../support/chain-levers.ts";
import {
  describeWithRedis,
  eachWithRedis,
  redis,
  server,
} from "../../support/describe-with-redis.ts";
import { chain, sandbox, withNewSandbox } from "../../support/fixtures.ts";
import { newMint } from "../../support/new-mint.ts";
import { rpcError } from "../../support/rpc-answers.ts";
import { hold, isAccountsRead, isMethod, isReadOf, onNext } from "../../support/sandbox.ts";
import { addMs, monotonicNow } from "../../../src/time/monotonic.ts";

const SOL = 1_000_000_000n;
const HALF = { kind: "collected", collected: SOL / 2n, newBalance: SOL / 2n };
/** The client retries a node that is behind, so this fault blocks a call until it is removed. */
const BEHIND = rpcError({ code: -32005 });

const it = withNewSandbox();
let mint: string;
let other: string;
beforeEach(() => {
  mint = newMint();
  other = newMint();
  const shareholders = ["artist001", "artist002"].map((handle) => {
    const { address, creatorVault } = sandbox.account(handle);
    chain.setBalance(address, 0n);
    chain.setBalance(creatorVault, 0n);
    return { address, bps: 5_000 };
  });
  for (const each of [mint, other])
    sandbox.coins.launch({
      mint: each,
      creator: shareholders[0]!.address,

      shareholders,
    });
  sandbox.coins.addFees(mint, SOL);
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const { faults } of [sandbox.rpc, sandbox.secondRpc]) faults.clear();
});

const collect = (
  { collector }: SandboxCollector,
  handle: string,
  mints = [mint],
  startedAt = monotonicNow(),
) =>
  collector
    .collect(
      { account: sandbox.account(handle), coins: mints.map(sandbox.coins.addressesOf) },
      "caller",
      startedAt,
    )
    .catch((error: unknown) => {
      if (error instanceof CollectError) return error.failure;
      throw error;
    });
/** Sets the fees in the first shareholder's vault. */
function setVault(fees: bigint): void {
  const { creatorVault } = sandbox.account("artist001");
  chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + fees);
}
/** Distributes what waits on the coin, as someone else. */
function drain(): void {
  const { coins } = sandbox;
  const { curve, sharingConfig } = coins.addressesOf(mint);
  for (const key of [curve, sharingConfig.creatorVault]) {
    const account = chain.account(key);
    if (!account) continue;
    const data = Buffer.from(account.data);
    if (key === curve) data.writeBigUInt64LE(0n, 125);
    chain.setAccount(key, { ...account, data, lamports: chain.rentExemptMinimum(data.length) });
  }
}
const signatureOf = (outcome: object) => ("signature" in outcome ? outcome.signature : undefined);

describe("the accounts that share a coin", () => {
  it("wait for the distribution in flight, although they name several coins in different orders", async () => {
    sandbox.coins.addFees(other, SOL);
    const collector = createSandboxCollector(sandbox);
    const both = [mint, other];
    const outcomes = await Promise.all([
      collect(collector, "artist001", both),
      collect(collector, "artist002", both.toReversed()),
    ]);
    expect(outcomes).toMatchObject(Array(2).fill({ collected: SOL / 2n }));
    expect(new Set(outcomes.map(signatureOf)).size).toBe(1);
    const others = await Promise.all([
      collect(collector, "artist001", both),
      collect(collector, "artist002", both),
    ]);
    expect(others).toMatchObject(Array(2).fill({ collected: SOL / 2n, remaining: [] }));
    expect(sandbox.landedCollects()).toHaveLength(2);
  });

  it("do not hear that nothing waits from a simulation of before they asked", async () => {
    const collector = createSandboxCollector(sandbox);
    const { coins, rpc } = sandbox;
    const shareholders = ["artist001", "artist002"].map((handle) => ({
      address: sandbox.account(handle).address,
      bps: 5_000,
    }));
    /** 1,200,000 is just above the launch platform's minimum. */
    const setFees = (fees: bigint) => {
      coins.launch({ mint, creator: mint, shareholders, fees });
    };
    const { creatorVault } = coins.addressesOf(mint).sharingConfig;
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
    setFees(1_200_000n);
    const answer = Promise.withResolvers<undefined>();
    rpc.faults.add({
      times: 1,
      after: true,
      until: answer.promise,
      when(call) {
        if (!isMethod("simulateTransaction")(call)) return false;
        setFees(1_100_000n);
        return true;
      },
    });
    const first = collect(collector, "artist001");
    await expect.poll(() => rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
    setFees(SOL);
    const second = collect(collector, "artist002");
    await expect.poll(() => rpc.calls.filter(isAccountsRead).length).toBe(2);
    answer.resolve(undefined);
    expect(await second).toMatchObject({ collected: SOL / 2n });
    await first;
  });

  it("do not repeat a distribution that fails on the chain", async () => {
    const collector = createSandboxCollector(sandbox);
    onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
      setPaused(sandbox.chain, mint, true);
    });
    const outcomes = await Promise.all([
      collect(collector, "artist001"),
      collect(collector, "artist002"),
    ]);
    // By then, the other one's read shows that the coin is paused.
    expect(outcomes.map(({ kind }) => kind)).toEqual(["failed-on-chain", "nothing"]);
    setPaused(sandbox.chain, mint, false);
    expect(await collect(collector, "artist002")).toMatchObject({ kind: "backing-off" });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("get no success for a distribution that had landed before they asked", async () => {
    const { coins, rpc } = sandbox;
    const collector = createSandboxCollector(sandbox);
    const release = hold(rpc, isMethod("getTransaction"));
    const first = collect(collector, "artist001");
    await expect.poll(() => rpc.calls.some(isMethod("getTransaction"))).toBe(true);
    coins.addFees(mint, SOL);
    const second = collect(collector, "artist002");
    const { creatorVault } = sandbox.account("artist002");
    await expect.poll(() => rpc.calls.some(isReadOf(creatorVault))).toBe(true);
    const { signature } = sandbox.landedCollects()[0]!;
    drain();
    release();
    expect(await first).toMatchObject({ kind: "collected", collected: SOL / 2n, signature });
    expect(await second).toMatchObject({
      ...{ kind: "nothing", lastCollect: { collected: SOL / 2n, signature } },
    });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("hear that its outcome is unknown, also after the collect's deadline", async () => {
    const rpcs = [sandbox.rpc, sandbox.secondRpc];
    const waits = { unknownAfterMs: 300_000 };
    const collector = createSandboxCollector(sandbox, { rpcs, waits });
    const later = addMs(monotonicNow(), 600_000);
    for (const { faults } of rpcs)
      faults.add({ when: isMethod("sendTransaction"), then: { status: 429, body: "" } });
    const first = collect(collector, "artist001", [mint], later);
    await expect.poll(() => collector.openSignatures()).toHaveLength(1);
    const [signature] = collector.openSignatures();
    const second = collect(collector, "artist002", [mint], later);
    const { creatorVault } = sandbox.account("artist002");
    const wasRead = () => rpcs.some(({ calls }) => calls.some(isReadOf(creatorVault)));
    await expect.poll(wasRead).toBe(true);
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + 600_001);
    drain();
    const unknown = { kind: "unknown", signature };
    expect(await Promise.all([first, second])).toEqual([unknown, unknown]);
  });

  it("get their share of the coin, if others always collect the vault first", async () => {
    setVault(SOL);
    for (let i = 0; i < 2; i++) {
      onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
        setVault(0n);
      });
      onNext(sandbox.rpc, isMethod("getTransaction"), () => {
        setVault(SOL);
      });
    }
    expect(await collect(createSandboxCollector(sandbox), "artist001")).toMatchObject(HALF);
    expect(sandbox.landedCollects()).toHaveLength(2);
  });
});

describeWithRedis("the accounts that share a coin, at two replicas", () => {
  let signer: SandboxCollector;
  let follower: SandboxCollector;
  eachWithRedis();
  beforeEach(() => {
    signer = createSandboxCollector(sandbox, { redis });
    follower = createSandboxCollector(sandbox, { redis, rpcs: [sandbox.secondRpc] });
  });
  /** Takes a coin's claim for a replica that never signs; returns the claim's key. */
  async function takeClaim(named: string): Promise<string> {
    const { address } = sandbox.coins.addressesOf(named).sharingConfig;
    const claim = `tributary:v3:claim:{${signer.feePayer}:${address}}`;
    await server.command("HSET", claim, "token", "another");
    return claim;
  }
  const isAsked = (claim: string) =>
    expect.poll(() => server.command("HGET", claim, "asked")).toBe("1");

  it("wait while another replica has the coin's claim: nothing is sent that is not stored under all claims", async () => {
    const { rpc } = sandbox;
    const release = hold(rpc, isMethod("getLatestBlockhash"));
    const outcome = collect(signer, "artist001");
    await expect.poll(() => rpc.calls.some(isMethod("getLatestBlockhash"))).toBe(true);
    const claim = await takeClaim(mint);
    release();
    await isAsked(claim);
    expect(rpc.calls.filter(isMethod("sendTransaction"))).toEqual([]);
    await server.command("DEL", claim);
    expect(await outcome).toMatchObject(HALF);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("keep no other coin's claim while they wait", async () => {
    sandbox.coins.addFees(other, SOL);
    const [free, busy] = [mint, other].toSorted();
    const claim = await takeClaim(busy!);
    const waiting = collect(signer, "artist001", [free!, busy!]);
    await isAsked(claim);
    expect(await collect(follower, "artist002", [free!])).toMatchObject(HALF);
    await server.command("DEL", claim);
    expect(await waiting).toMatchObject({ kind: "collected", collected: SOL / 2n });
  });

  it("get what their vaults hold while another replica has the coin's claim, and no plain collect waits", async () => {
    await takeClaim(mint);
    setVault(SOL);
    expect(await collect(signer, "artist001")).toMatchObject({
      ...{ kind: "collected", collected: SOL, remaining: [{ mint, amount: SOL / 2n }] },
    });
    setVault(SOL);
    expect(await collect(signer, "artist001", [])).toMatchObject({ collected: SOL });
  });

  it("go on after a distribution that failed on the chain, with their vaults", async () => {
    onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
      setPaused(sandbox.chain, mint, true);
    });
    expect(await collect(signer, "artist001")).toMatchObject({ kind: "failed-on-chain" });
    setVault(SOL);
    for (const replica of [signer, follower])
      expect(await collect(replica, "artist001", [])).toMatchObject(
        replica === signer ? { kind: "collected", collected: SOL } : { kind: "nothing" },
      );
  });

  it("wait after a distribution that expired, at both replicas", async () => {
    const lift = sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: BEHIND });
    const first = collect(signer, "artist001");
    await expect.poll(() => signer.openSignatures()).toHaveLength(1);
    chain.advanceSlots(200);
    expect(await first).toMatchObject({ kind: "expired" });
    lift();
    for (const replica of [signer, follower])
      expect(await collect(replica, "artist001")).toMatchObject({ kind: "backing-off" });
    expect(sandbox.landedCollects()).toEqual([]);
  });

  it("are collected while a distribution does not land", async () => {
    sandbox.rpc.faults.add({
      when: isMethod("sendTransaction", "getSignatureStatuses"),
      then: BEHIND,
    });
    void collect(signer, "artist001");
    await expect.poll(() => signer.openSignatures()).toHaveLength(1);
    setVault(SOL);
    const outcome = await collect(follower, "artist001", []);
    expect(outcome).toMatchObject({ kind: "collected", collected: SOL });
    expect(signatureOf(outcome)).not.toBe(signer.openSignatures()[0]);
    sandbox.rpc.faults.clear();
    await signer.settled();
  });

  it("do not fail the collect of an account that names the coin without a share", async () => {
    const release = hold(sandbox.rpc, isMethod("sendTransaction"));
    const first = collect(signer, "artist001");
    await expect.poll(() => signer.openSignatures()).toHaveLength(1);
    const other = collect(signer, "creator");
    release();
    expect(await first).toMatchObject(HALF);
    expect(await other).toMatchObject({ kind: "collected" });
  });

  it("are paid by one distribution, which either sends", async () => {
    const lift = sandbox.rpc.faults.add({
      when: isMethod("sendTransaction", "getSignatureStatuses"),
      then: BEHIND,
    });
    const first = collect(signer, "artist001");
    await expect.poll(() => signer.openSignatures()).toHaveLength(1);
    const second = await collect(follower, "artist002");
    expect(second).toMatchObject(HALF);
    lift();
    expect(await first).toMatchObject(HALF);
    expect(signatureOf(await first)).toBe(signatureOf(second));
    expect(sandbox.landedCollects()).toHaveLength(1);
  });
});

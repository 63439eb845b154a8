import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CollectError } from "../../../src/chain/errors/collect-error.ts";
import type { Redis } from "../../../src/store/redis.ts";
import {
  createSandboxCollector,
  type SandboxCollector,
} from "../../support/collector-on-sandbox.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import { newMint } from "../../support/new-mint.ts";
import { rpcError } from "../../support/rpc-answers.ts";
import {
  hold,
  isAccountsRead,
  isMethod,
  NEVER_MS,
  onNext,
  startTestSandbox,
  type TestSandbox,
} from "../../support/sandbox.ts";
import { addMs, monotonicNow } from "../../../src/time/monotonic.ts";

const SOL = 1_000_000_000n;
const HALF = { kind: "collected", collected: SOL / 2n, newBalance: SOL / 2n };
/** The client retries a node that is behind, so this fault blocks a call until it is removed. */
const BEHIND = rpcError({ code: -32005 });

let sandbox: TestSandbox;
let mint: string;
let other: string;
beforeEach(async () => {
  sandbox = await startTestSandbox();
  mint = newMint();
  other = newMint();
  const shareholders = ["artist001", "artist002"].map((handle) => {
    const { address, creatorVault } = sandbox.account(handle);
    sandbox.chain.setBalance(address, 0n);
    sandbox.chain.setBalance(creatorVault, 0n);
    return { address, bps: 5_000 };
  });
  for (const each of [mint, other])
    sandbox.coins.launch({
      mint: each,
      creator: shareholders[0]!.address,
      kind: "shared",
      shareholders,
    });
  sandbox.coins.addFees(mint, SOL);
});
afterEach(async () => {
  sandbox.rpc.faults.clear();
  await sandbox.close();
});

const collect = ({ collector }: SandboxCollector, handle: string, mints = [mint]) =>
  collector
    .collect(
      { account: sandbox.account(handle), coins: mints.map(sandbox.coins.addressesOf) },
      "caller",
      monotonicNow(),
    )
    .catch((error: unknown) => {
      if (error instanceof CollectError) return error.failure;
      throw error;
    });
/** Sets the fees in the first shareholder's vault. */
function setVault(fees: bigint): void {
  const { creatorVault } = sandbox.account("artist001");
  sandbox.chain.setBalance(creatorVault, sandbox.chain.rentExemptMinimum(0) + fees);
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

  it("do not wait for a transaction that leaves out the coin that they share", async () => {
    // Less than the launch platform distributes, so the simulation leaves it out.
    sandbox.coins.addFees(other, 1_000_000n);
    const { creatorVault } = sandbox.coins.addressesOf(other).sharingConfig;
    sandbox.chain.setBalance(creatorVault, sandbox.chain.rentExemptMinimum(0));
    const collector = createSandboxCollector(sandbox);
    const release = hold(sandbox.rpc, isMethod("sendTransaction"));
    const first = collect(collector, "artist001", [mint, other]);
    await expect.poll(() => collector.openSignatures()).toHaveLength(1);
    sandbox.coins.addFees(other, SOL);
    const second = collect(collector, "artist002", [other]);
    await expect.poll(() => collector.openSignatures()).toHaveLength(2);
    release();
    expect(await Promise.all([first, second])).toMatchObject([
      HALF,
      { collected: (SOL + 1_000_000n) / 2n },
    ]);
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
      coins.launch({ mint, creator: mint, kind: "shared", shareholders, fees });
    };
    const { creatorVault } = coins.addressesOf(mint).sharingConfig;
    sandbox.chain.setBalance(creatorVault, sandbox.chain.rentExemptMinimum(0));
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

  it("are collected although others collect first", async () => {
    const { chain, rpc } = sandbox;
    const { creatorVault } = sandbox.account("artist001");
    const rentMinimum = chain.rentExemptMinimum(0);
    chain.setBalance(creatorVault, rentMinimum + SOL);
    onNext(rpc, isMethod("sendTransaction"), () => {
      chain.setBalance(creatorVault, rentMinimum);
      onNext(rpc, isMethod("getTransaction"), () => {
        chain.setBalance(creatorVault, rentMinimum + SOL);
        chain.advanceSlots(1);
      });
    });
    const collector = createSandboxCollector(sandbox, { waits: { resendMs: NEVER_MS } });
    expect(await collect(collector, "artist001", [other])).toMatchObject({
      ...{ kind: "collected", collected: SOL },
    });
    expect(sandbox.landedCollects()).toHaveLength(2);
  });

  it("hear that the coin backs off, although the vault has too little for an empty address", async () => {
    const collector = createSandboxCollector(sandbox);
    onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
      sandbox.coins.setSharing(mint, { isPaused: true });
    });
    expect(await collect(collector, "artist001")).toMatchObject({ kind: "failed-on-chain" });
    sandbox.coins.setSharing(mint, { isPaused: false });
    const { creatorVault } = sandbox.account("artist002");
    sandbox.chain.setBalance(creatorVault, sandbox.chain.rentExemptMinimum(0) + 200_000n);
    expect(await collect(collector, "artist002")).toMatchObject({ kind: "backing-off" });
  });

  it("do not repeat a distribution that fails on the chain", async () => {
    const collector = createSandboxCollector(sandbox);
    onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
      sandbox.coins.setSharing(mint, { isPaused: true });
    });
    const outcomes = await Promise.all([
      collect(collector, "artist001"),
      collect(collector, "artist002"),
    ]);
    // By then, the other one's read shows that the coin is paused.
    expect(outcomes.map(({ kind }) => kind)).toEqual(["failed-on-chain", "nothing"]);
    sandbox.coins.setSharing(mint, { isPaused: false });
    expect(await collect(collector, "artist002")).toMatchObject({ kind: "backing-off" });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("are paid by the first collect that can distribute, if another one's deadline passes", async () => {
    const collector = createSandboxCollector(sandbox);
    const late = collector.collector.collect(
      { account: sandbox.account("artist001"), coins: [sandbox.coins.addressesOf(mint)] },
      "caller",
      addMs(monotonicNow(), -600_000),
    );
    await expect(late).rejects.toBeInstanceOf(CollectError);
    expect(await collect(collector, "artist002")).toMatchObject(HALF);
  });
});

describe("an account with a vault and a shared coin", () => {
  let collector: SandboxCollector;
  beforeEach(() => {
    collector = createSandboxCollector(sandbox);
  });

  it("gets its share of the coin, if others always collect the vault first", async () => {
    setVault(SOL);
    for (let i = 0; i < 2; i++) {
      onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
        setVault(0n);
      });
      onNext(sandbox.rpc, isMethod("getTransaction"), () => {
        setVault(SOL);
      });
    }
    expect(await collect(collector, "artist001")).toMatchObject(HALF);
    expect(sandbox.landedCollects()).toHaveLength(2);
  });

  it("hears how much rent is missing, whichever request's simulation shows it", async () => {
    setVault(200_000n);
    const mints = Array.from({ length: 5 }, newMint);
    const { address } = sandbox.account("artist001");
    for (const each of mints) sandbox.coins.launch({ mint: each, creator: address });
    const outcomes = await Promise.all(
      mints.map((each) => collect(collector, "artist001", [each])),
    );
    const missing = sandbox.chain.rentExemptMinimum(0) - 200_000n;
    expect(outcomes).toMatchObject(Array(5).fill({ kind: "nothing", missing }));
  });
});

describeWithRedis("the accounts that share a coin, at two replicas", () => {
  let redis: Redis;
  let signer: SandboxCollector;
  let follower: SandboxCollector;
  eachWithRedis((_, newRedis) => {
    redis = newRedis;
    signer = createSandboxCollector(sandbox, { redis });
    follower = createSandboxCollector(sandbox, { redis, rpcs: [sandbox.secondRpc] });
  });

  it("go on after a distribution that failed on the chain, with their vaults", async () => {
    onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
      sandbox.coins.setSharing(mint, { isPaused: true });
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
    sandbox.chain.advanceSlots(200);
    expect(await first).toMatchObject({ kind: "expired" });
    lift();
    for (const replica of [signer, follower])
      expect(await collect(replica, "artist001")).toMatchObject({ kind: "backing-off" });
    expect(sandbox.landedCollects()).toEqual([]);
  });

  it("do not hear that nothing waits, if one of their units fills while another is collected elsewhere", async () => {
    const { address } = sandbox.account("artist001");
    setVault(SOL);
    /** What the signer does before the other replica's request takes the claim of an address. */
    const beforeClaims = new Map([
      [address, () => collect(signer, "artist001", [])],
      [
        sandbox.coins.addressesOf(mint).sharingConfig.address,
        () => {
          setVault(SOL);
          return collect(signer, "artist002");
        },
      ],
    ]);
    const collectedElsewhere: unknown[] = [];
    const lateRedis: Redis = {
      ...redis,
      async run(script, call) {
        const { claim = "", newToken = "" } = call as { claim?: string; newToken?: string };
        const claimed = [...beforeClaims.keys()].find((each) => claim.includes(each));
        if (newToken !== "" && claimed !== undefined) {
          const act = beforeClaims.get(claimed);
          beforeClaims.delete(claimed);
          collectedElsewhere.push(await act?.());
        }
        return redis.run(script, call);
      },
    };
    const late = createSandboxCollector(sandbox, { redis: lateRedis });
    expect(await collect(late, "artist001")).toMatchObject({ kind: "collected", collected: SOL });
    expect(collectedElsewhere).toMatchObject([{ collected: SOL }, HALF]);
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

import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startLyingEndpoint } from "../../support/doubles/lying-endpoint.ts";
import { createClaims } from "../../../src/chain/collect/claims.ts";
import { takeClaim } from "../../support/take-claim.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import type { RedisServer } from "../../support/redis-server.ts";
import { rpcError, rpcResult } from "../../support/rpc-answers.ts";
import { newMint } from "../../support/new-mint.ts";
import { startWorld, type World } from "../../support/world.ts";
import { setAmmVault } from "../../../src/sandbox/chain/creator-fees.ts";
import { LAUNCHPAD_FEES_PROGRAM_ID } from "../../../src/chain/launchpad/program-ids.ts";
import type { Redis } from "../../../src/store/redis.ts";
import {
  createSandboxCollector,
  type ChainRpc,
  type SandboxCollector,
} from "../../support/collector-on-sandbox.ts";
import {
  hold,
  isMethod,
  startTestSandbox,
  type TestSandbox,
  isLook,
  isReadOf,
} from "../../support/sandbox.ts";
import { monotonicNow } from "../../../src/time/monotonic.ts";

const sendsTo = (rpc: ChainRpc) => rpc.calls.filter(isMethod("sendTransaction"));
/** The client retries a node that is behind, so this fault blocks a call until it is removed. */
const BEHIND = rpcError({ code: -32005 });
const STILL_PREPARING = { kind: "still-running", signature: undefined };
const ALL_FEES = {
  kind: "collected",
  collected: 3_100_000_000n,
  newBalance: 8_300_000_000n,
  remaining: [],
};

let sandbox: TestSandbox;
let chain: TestSandbox["chain"];
let rpc: ChainRpc;
let collector: SandboxCollector;
beforeEach(async () => {
  sandbox = await startTestSandbox();
  ({ chain, rpc } = sandbox);
  collector = createSandboxCollector(sandbox);
});
afterEach(async () => {
  rpc.faults.clear();
  sandbox.secondRpc.faults.clear();
  // Closing the servers ends the remaining calls.
  await sandbox.close();
});

const sends = () => sendsTo(rpc);
const wasCalled = (method: string) =>
  expect.poll(() => rpc.calls.filter(isMethod(method)).length).toBeGreaterThan(0);
const wasRead = (address: string) =>
  expect.poll(() => rpc.calls.some(isReadOf(address))).toBe(true);
const wasSent = () => wasCalled("sendTransaction");
/** Calls `run` when the method is first called, before the answer. */
function onFirstCall(method: string, run: () => void): void {
  rpc.faults.add({
    times: 1,
    when(call) {
      if (call.method !== method) return false;
      run();
      return true;
    },
  });
}

describe("a transaction in flight", () => {
  it("counts as sent when the answer to sendTransaction is lost", async () => {
    rpc.faults.add({ when: isMethod("sendTransaction"), times: 1, then: "reset", after: true });
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("is reported expired only when it can no longer land, and the next collect signs a new one", async () => {
    const removeFault = rpc.faults.add({ when: isMethod("sendTransaction"), then: BEHIND });
    const first = collector.collect("creator");
    await wasSent();
    const [signature] = collector.openSignatures();
    chain.advanceSlots(200);
    expect(await first).toEqual({ kind: "expired", signature });
    removeFault();

    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
    expect(new Set(sends().map(({ params }) => params[0])).size).toBe(2);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("makes its account back off when it fails on the chain, while other accounts can collect", async () => {
    // After the simulation, the address becomes an account that the launch platform does not pay.
    const { address, creatorVault } = sandbox.account("creator");
    const account = chain.account(address)!;
    onFirstCall("sendTransaction", () => {
      chain.setAccount(address, { ...account, owner: LAUNCHPAD_FEES_PROGRAM_ID });
    });
    const failure = await collector.collect("creator");
    chain.setAccount(address, account);
    const [failed] = sandbox.landedCollects();
    expect(failed!.err).toEqual({ InstructionError: [expect.any(Number), { Custom: 6050 }] });
    expect(failure).toEqual({
      kind: "failed-on-chain",
      signature: failed!.signature,
      err: failed!.err,
    });

    expect(await collector.collect("creator")).toEqual({
      kind: "backing-off",
      leftMs: expect.any(Number),
    });
    expect(await collector.collect("artist001")).toMatchObject({ kind: "collected" });
    chain.setBalance(creatorVault, 0n);
    expect(await collector.collect("creator")).toEqual({ kind: "nothing" });
    expect(sandbox.landedCollects()).toHaveLength(2);
  });

  it("collects nothing when someone else collected first", async () => {
    const { creatorVault } = sandbox.account("creator");
    onFirstCall("sendTransaction", () => {
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
    });
    expect(await collector.collect("creator")).toEqual({ kind: "nothing" });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  describe("keeps its success for a caller whose own collect, of a coin with nothing,", () => {
    /** Joins a transaction in flight, and fails the call `method` of the caller's own collect. */
    async function joinAndFail(method: string, code: number) {
      const account = sandbox.account("creator");
      const release = hold(rpc, isLook);
      const lift = rpc.faults.add({ when: isMethod("sendTransaction"), then: BEHIND });
      const first = collector.collect("creator");
      await wasSent();
      const [bytes] = sends()[0]!.params;
      const coins = [sandbox.coins.addressesOf(newMint())];
      rpc.calls.length = 0;
      const second = collector.collector.collect({ account, coins }, "other", monotonicNow());
      await wasRead(account.creatorVault);
      lift();
      await expect.poll(sandbox.landedCollects).toHaveLength(1);
      chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0) + 1_000_000_000n);
      rpc.calls.length = 0;
      rpc.faults.add({ when: isMethod(method), then: rpcError({ code }) });
      release();
      return { first, second, bytes };
    }

    it("fails", async () => {
      const { first, second } = await joinAndFail("simulateTransaction", -32602);
      expect(await second).toMatchObject({ signature: ((await first) as any).signature });
      expect(sandbox.landedCollects()).toHaveLength(1);
    });

    it("expires", async () => {
      const { first, second, bytes } = await joinAndFail("sendTransaction", -32005);
      // The first transaction may be sent again before it is found.
      await expect.poll(() => sends().some(({ params }) => params[0] !== bytes)).toBe(true);
      chain.advanceSlots(300);
      expect(await second).toMatchObject({ signature: ((await first) as any).signature });
    });
  });

  it("is followed by another when someone else collected first, but fees arrived in the AMM's vault", async () => {
    const account = sandbox.account("creator");
    onFirstCall("sendTransaction", () => {
      chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0));
      setAmmVault(chain, account, 1_000_000_000n);
    });
    expect(await collector.collect("creator")).toMatchObject({
      ...{ kind: "collected", collected: 1_000_000_000n },
    });
    expect(sandbox.landedCollects()).toHaveLength(2);
  });
});

describe("a collect", () => {
  it("succeeds when the owner withdraws from the address at the same time", async () => {
    onFirstCall("simulateTransaction", () => {
      chain.setBalance(sandbox.account("creator").address, 1_000_000_000n);
    });
    expect(await collector.collect("creator")).toMatchObject({
      kind: "collected",
      collected: 3_100_000_000n,
      newBalance: 4_100_000_000n,
    });
  });

  it("that finds nothing is followed by another for callers who joined it after fees had arrived", async () => {
    const { creatorVault } = sandbox.account("newcomer");
    const answered = Promise.withResolvers<undefined>();
    rpc.faults.add({
      when: isMethod("getMultipleAccounts"),
      times: 1,
      after: true,
      until: answered.promise,
    });
    const first = collector.collect("newcomer");
    await wasCalled("getMultipleAccounts");
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 1_000_000_000n);
    const joined = [collector.collect("newcomer"), collector.collect("newcomer")];
    answered.resolve(undefined);
    expect(await first).toEqual({ kind: "nothing" });
    const [one, other] = await Promise.all(joined);
    expect(one).toMatchObject({ kind: "collected", collected: 1_000_000_000n });
    expect(other).toEqual(one);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("sends nothing if its simulation sees an empty vault", async () => {
    const { creatorVault } = sandbox.account("creator");
    onFirstCall("simulateTransaction", () => {
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
    });
    expect(await collector.collect("creator")).toMatchObject({ kind: "nothing" });
    expect(sends()).toEqual([]);
  });

  it("does not start when its request has timed out", async () => {
    expect(await collector.collectTooLate("creator")).toEqual({ kind: "not-started" });
    expect(rpc.calls).toEqual([]);
  });

  it("names the transaction in flight to a caller who has timed out on the way", async () => {
    const removeFault = rpc.faults.add({ when: isMethod("sendTransaction"), then: BEHIND });
    const collected = collector.collect("creator");
    await expect.poll(sends).not.toEqual([]);
    const [signature] = collector.openSignatures();
    expect(await collector.collectTooLate("creator")).toEqual({ kind: "still-running", signature });
    removeFault();
    expect(await collected).toMatchObject(ALL_FEES);
  });

  it("is refused when the fee payer cannot pay for it and those in flight", async () => {
    chain.setBalance(collector.feePayer, chain.rentExemptMinimum(0) + 3n * 5_100n);
    // No transaction lands before every collect has been accepted or refused.
    const removeFault = rpc.faults.add({ when: isMethod("sendTransaction"), then: BEHIND });
    const handles = ["artist001", "artist002", "artist003", "artist004", "artist005", "artist006"];
    const outcomes: string[] = [];
    const collects: Promise<unknown>[] = [];
    for (const handle of handles) {
      collects.push(collector.collect(handle).then(({ kind }) => outcomes.push(kind)));
      // One after the other, so that they do not share a transaction.
      await expect
        .poll(() => collector.openSignatures().length + outcomes.length)
        .toBe(collects.length);
    }
    expect(outcomes).toEqual(Array(3).fill("fee-payer-short"));
    removeFault();
    await Promise.all(collects);
    expect(outcomes.slice(3)).toEqual(Array(3).fill("collected"));
    expect(sandbox.landedCollects()).toHaveLength(3);
  });

  it("charges the budget the signed fee, not the fee that a node reports", async () => {
    const node = await startLyingEndpoint(sandbox);
    onTestFinished(() => node.close());
    collector = createSandboxCollector(sandbox, {
      rpcs: [node],
      env: { FEE_BUDGET_LAMPORTS_PER_HOUR: "24000" },
    });
    node.lie({
      getTransaction(tellTruth) {
        const result = tellTruth();
        return result && { ...result, meta: { ...result.meta, fee: 1_000_000 } };
      },
    });
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
    expect(await collector.collect("artist001", "other")).toMatchObject({ kind: "collected" });
  });
});

/** Two fees at once for each caller, ten for all. */
const TWO_FEES = { FEE_BUDGET_LAMPORTS_PER_HOUR: "102000", MAX_PRIORITY_FEE_LAMPORTS: "0" };
const collected = { kind: "collected" };
const shareUsed = { kind: "budget-spent", scope: "CALLER", isSmall: false };

describe("the fee of a collect that several callers share", () => {
  const isSimulating = () =>
    expect.poll(() => rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
  beforeEach(() => {
    collector = createSandboxCollector(sandbox, { env: TWO_FEES });
  });

  it("counts in the share of the caller who started it, and in no other", async () => {
    const release = hold(rpc, isMethod("simulateTransaction"));
    const first = collector.collect("creator", "first");
    await isSimulating();
    const joined = collector.collect("creator", "second");
    release();
    expect([await first, await joined]).toMatchObject([collected, collected]);
    expect(await collector.collect("artist001", "second")).toMatchObject(collected);
    expect(await collector.collect("artist002", "second")).toMatchObject(collected);
    expect(await collector.collect("artist003", "first")).toMatchObject(collected);
    expect(await collector.collect("artist004", "first")).toMatchObject(shareUsed);
  });

  it("counts in the share of one who waited, if the caller who started it has used its own", async () => {
    await collector.collect("artist001", "attacker");
    await collector.collect("artist002", "attacker");
    rpc.calls.length = 0;
    const release = hold(rpc, isMethod("simulateTransaction"));
    const first = collector.collect("creator", "attacker");
    await isSimulating();
    const waiting = collector.collect("creator", "honest");
    release();
    expect([await first, await waiting]).toMatchObject([shareUsed, collected]);
    expect(sandbox.landedCollectsOf("creator")).toHaveLength(1);
    expect(await collector.collect("artist003", "honest")).toMatchObject(collected);
    expect(await collector.collect("artist004", "honest")).toMatchObject(shareUsed);
  });
});

describeWithRedis("a caller who waits for a collect that is just being refused", () => {
  let redis: Redis;
  eachWithRedis((_, newRedis) => {
    redis = newRedis;
  });

  it("is not refused for another caller's share, at whatever moment it asks", async () => {
    let onRefused: (() => void) | undefined;
    const watchedRedis: Redis = {
      ...redis,
      async run(script, call) {
        const answered = await redis.run(script, call);
        const { keys } = script.toArguments(call);
        const isLast = !keys.some((key) => key.includes(":first"));
        if (isLast && keys.some((key) => key.endsWith(":attacker"))) onRefused?.();
        return answered;
      },
    };
    collector = createSandboxCollector(sandbox, {
      redis: watchedRedis,
      env: { ...TWO_FEES, FEE_BUDGET_LAMPORTS_PER_HOUR: "255000" },
    });
    const { accounts } = sandbox;
    const artists = accounts
      .filter(({ handle }) => handle.startsWith("artist"))
      .map(({ handle }) => handle);
    for (const artist of artists) chain.setBalance(sandbox.account(artist).creatorVault, 10n ** 9n);
    const spent = artists.slice(0, 5).map((artist) => collector.collect(artist, "attacker"));
    expect(await Promise.all(spent)).toMatchObject(Array(5).fill(collected));

    const joined: Promise<unknown>[] = [];
    for (let microtasks = 0; microtasks < 20; microtasks++) {
      const artist = artists[5 + microtasks]!;
      const refused = new Promise<void>((resolve) => (onRefused = resolve));
      const attack = collector.collect(artist, "attacker");
      await refused;
      onRefused = undefined;
      for (let i = 0; i < microtasks; i++) await Promise.resolve();
      joined.push(collector.collect(artist, `honest${microtasks}`));
      await Promise.race([attack, joined.at(-1)]);
    }
    expect(await Promise.all(joined)).toMatchObject(Array(20).fill(collected));
  });
});

describe("a caller who times out", () => {
  it("receives the signature, and the next collect reports that transaction, which lands after it asks", async () => {
    const removeFault = rpc.faults.add({ when: isMethod("sendTransaction"), then: "reset" });
    const first = collector.collect("creator");
    await wasSent();
    const [signature] = collector.openSignatures();
    expect(await collector.collectBriefly("creator")).toEqual({ kind: "still-running", signature });
    expect(chain.landed(signature!)).toBeUndefined();

    rpc.calls.length = 0;
    const next = collector.collect("creator");
    await wasRead(sandbox.account("creator").creatorVault);
    removeFault();
    expect(await next).toEqual({ ...ALL_FEES, signature });
    expect(await first).toEqual(await next);
    expect(chain.balance(sandbox.account("creator").address)).toBe(8_300_000_000n);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it.each(["getMultipleAccounts", "simulateTransaction", "getLatestBlockhash"])(
    "during %s is told that the collect is still running, and no other caller notices",
    async (method) => {
      const removeFault = rpc.faults.add({ when: isMethod(method), then: BEHIND });
      const other = collector.collect("creator");
      await wasCalled(method);
      expect(await collector.collectBriefly("creator")).toEqual(STILL_PREPARING);
      expect(collector.openSignatures()).toEqual([]);
      removeFault();
      expect(await other).toMatchObject(ALL_FEES);
      expect(sandbox.landedCollects()).toHaveLength(1);
    },
  );

  it("receives the signature when the transaction landed but its amounts cannot be read", async () => {
    const removeFault = rpc.faults.add({ when: isMethod("getTransaction"), then: rpcResult(null) });
    const first = collector.collect("creator");
    await wasCalled("getTransaction");
    const [landed] = sandbox.landedCollects();
    const { signature } = landed!;
    expect(await collector.collectBriefly("creator")).toEqual({
      kind: "landed-unreadable",
      signature,
    });
    removeFault();
    expect(await first).toEqual({ ...ALL_FEES, signature });
  });
});

let server: RedisServer;
let redis: Redis;

describeWithRedis("a collect whose claim another replica holds", () => {
  eachWithRedis((_, newRedis) => {
    redis = newRedis;
  });

  it("waits until its deadline, and signs nothing", async () => {
    const env = { COLLECT_TIMEOUT_MS: "1000" };
    const waiting = createSandboxCollector(sandbox, { redis, env });
    const claims = createClaims({ feePayer: waiting.feePayer, redis });
    const claim = await takeClaim(claims, sandbox.account("creator").address);
    expect(await waiting.collect("creator")).toEqual({ kind: "still-running" });
    await waiting.settled();
    expect(sandbox.landedCollects()).toEqual([]);
    claim.settle();
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
  });
});

describeWithRedis("a collect whose lease expires before its transaction is sent", () => {
  eachWithRedis((newServer, newRedis) => {
    server = newServer;
    redis = newRedis;
  });

  /**
   * Starts a slow replica, which loses its lock before it signs, and a fast one, which can acquire
   * the lock.
   */
  async function startReplicas() {
    const env = { FEE_BUDGET_LAMPORTS_PER_HOUR: "600000", MAX_PRIORITY_FEE_LAMPORTS: "0" };
    const slow = createSandboxCollector(sandbox, { redis, env });
    const fast = createSandboxCollector(sandbox, { redis, env, rpcs: [sandbox.secondRpc] });
    const removeFault = rpc.faults.add({ when: isMethod("getLatestBlockhash"), then: BEHIND });
    const slowCollect = slow.collect("creator");
    await wasCalled("getLatestBlockhash");
    const id = `${slow.feePayer}:${sandbox.account("creator").address}`;
    await server.command("DEL", `tributary:v3:claim:{${id}}`, `tributary:collect:${id}`);
    return { slow, fast, removeFault, slowCollect };
  }
  /** The time in ms in which the budget is full again; 60,000 for one fee. */
  const untilFull = (feePayer: string): Promise<number> =>
    server.command("PTTL", `tributary:v2:bucket:{fees:${feePayer}}:all`);

  it("confirms the transaction of the replica that took over, and sends none of its own", async () => {
    const { slow, fast, removeFault, slowCollect } = await startReplicas();
    sandbox.secondRpc.faults.add({ when: isLook, then: BEHIND });
    const fastCollect = fast.collect("creator");
    await expect.poll(() => sendsTo(sandbox.secondRpc).length).toBeGreaterThan(0);
    removeFault();
    // It landed after the slow replica's read.
    const success = await slowCollect;
    sandbox.secondRpc.faults.clear();
    const { signature } = sandbox.landedCollects()[0]!;
    expect(success).toMatchObject({ ...ALL_FEES, signature });
    expect(await fastCollect).toMatchObject({ ...ALL_FEES, signature });
    const bytes = sendsTo(sandbox.secondRpc)[0]!.params[0];
    for (const { params } of sends()) expect(params[0]).toBe(bytes);
    expect(sandbox.landedCollects()).toHaveLength(1);
    expect(await untilFull(slow.feePayer)).toBeGreaterThan(0);
    expect(await untilFull(slow.feePayer)).toBeLessThan(61_000);
  });

  it("finds nothing to collect when the other replica has finished", async () => {
    const { fast, removeFault, slowCollect } = await startReplicas();
    expect(await fast.collect("creator")).toMatchObject(ALL_FEES);
    removeFault();
    expect(await slowCollect).toMatchObject({
      kind: "nothing",
      lastCollect: { newBalance: 8_300_000_000n },
    });
    expect(sends()).toEqual([]);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });
});

describe("a collect over HTTP", () => {
  let service: World;
  afterEach(async () => {
    // A failed test leaves its faults behind, and close() waits for every transaction in flight.
    service.sandbox.rpc.faults.clear();
    await service.close();
  });
  const sendsOfService = () => sendsTo(service.sandbox.rpc);

  it("shares its deadline with the other collects of its request, so that all are answered", async () => {
    service = await startWorld({ COLLECT_TIMEOUT_MS: "1000" });
    const { faults } = service.sandbox.rpc;
    faults.add({ when: isLook, then: { status: 503, body: "" } });
    const ids = ["creator", "artist001", "artist002"].map((handle) => service.account(handle).id);
    // A slow machine may need several requests until the transaction is sent; then it stays in
    // flight.
    await expect
      .poll(async () => {
        await service.collect(ids[0]!);
        return sendsOfService().length;
      })
      .toBeGreaterThan(0);
    const fields = ids.map((id, i) => `c${i}: collect(socialId: "${id}") { success }`);
    const { body } = await service.graphql(`mutation { ${fields.join(" ")} }`);
    const messages: string[] = body.errors.map(({ message }: { message: string }) => message);
    expect(messages[0]).toMatch(/it is not known yet whether transaction \w+ lands/);
    expect(messages).toHaveLength(3);
    // A timer may fire a millisecond before the deadline; the next collect then starts and times
    // out at once.
    for (const message of messages.slice(1))
      expect(message).toMatch(
        /timed out before this collect started|it has no transaction in flight yet/,
      );
    expect(new Set(sendsOfService().map(({ params }) => params[0])).size).toBe(1);
    faults.clear();
  });

  it("is not cancelled when its caller leaves", async () => {
    service = await startWorld();
    const { id, address } = service.account("creator");
    const leaving = new AbortController();
    const collect = fetch(`${service.url}/collect`, {
      method: "POST",
      body: JSON.stringify({ socialId: id }),
      signal: leaving.signal,
    });
    // The caller leaves after the transaction is sent and before it is confirmed.
    service.sandbox.rpc.faults.add({ when: isLook, then: BEHIND });
    await expect.poll(() => sendsOfService().length).toBeGreaterThan(0);
    leaving.abort();
    await expect(collect).rejects.toThrow();
    service.sandbox.rpc.faults.clear();
    await service.gateway.settled();
    expect(service.sandbox.chain.balance(address)).toBe(8_300_000_000n);
  });
});

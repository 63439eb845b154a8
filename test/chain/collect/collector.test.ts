import { afterEach, beforeEach, describe, expect, onTestFinished, vi } from "vitest";
import { behindBy, startLyingEndpoint } from "../../support/doubles/lying-endpoint.ts";
import { createClaims, TAKE } from "../../../src/chain/collect/claims.ts";
import { takeClaim } from "../../support/take-claim.ts";
import {
  describeWithRedis,
  eachWithRedis,
  redis,
  server,
} from "../../support/describe-with-redis.ts";
import { chain, sandbox, withNewSandbox } from "../../support/fixtures.ts";
import { REFUSES_VERSION_1 } from "../../support/refuse-version-1.ts";
import { rpcError, rpcResult } from "../../support/rpc-answers.ts";
import { newMint } from "../../support/new-mint.ts";
import { startWorld, type World } from "../../support/world.ts";
import type { Redis } from "../../../src/store/redis.ts";
import {
  createSandboxCollector,
  type ChainRpc,
  type SandboxCollector,
} from "../../support/collector-on-sandbox.ts";
import { hold, isAccountsRead, isMethod, onNext, isLook, isReadOf } from "../../support/sandbox.ts";
import { createSkipTime } from "../../support/skip-time.ts";
import { monotonicNow } from "../../../src/time/monotonic.ts";

const sendsTo = (rpc: ChainRpc) => rpc.calls.filter(isMethod("sendTransaction"));
/** The client retries a node that is behind, so this fault blocks a call until it is removed. */
const BEHIND = rpcError({ code: -32005 });
const STILL_PREPARING = { kind: "still-running", signature: undefined };
const AMOUNTS = { collected: 3_100_000_000n, newBalance: 8_300_000_000n };
const ALL_FEES = { kind: "collected", ...AMOUNTS, remaining: [] };

const it = withNewSandbox();
let rpc: ChainRpc;
let collector: SandboxCollector;
beforeEach(() => {
  ({ rpc } = sandbox);
  collector = createSandboxCollector(sandbox);
});
afterEach(() => {
  vi.restoreAllMocks();
  rpc.faults.clear();
  sandbox.secondRpc.faults.clear();
});

const sends = () => sendsTo(rpc);
const wasCalled = (method: string) =>
  expect.poll(() => rpc.calls.filter(isMethod(method)).length).toBeGreaterThan(0);
const wasRead = (address: string) =>
  expect.poll(() => rpc.calls.some(isReadOf(address))).toBe(true);
const wasSent = () => wasCalled("sendTransaction");

describe("a transaction in flight", () => {
  it("keeps its success for a caller whose own collect, of a coin with nothing, fails", async () => {
    const account = sandbox.account("creator");
    const release = hold(rpc, isLook);
    const lift = rpc.faults.add({ when: isMethod("sendTransaction"), then: BEHIND });
    const first = collector.collect("creator");
    await wasSent();
    const coins = [sandbox.coins.addressesOf(newMint())];
    rpc.calls.length = 0;
    const second = collector.collector.collect({ account, coins }, "other", monotonicNow());
    await wasRead(account.creatorVault);
    // The landing must be above the newest slot that the second one has read.
    await wasCalled("getSlot");
    lift();
    await expect.poll(sandbox.landedCollects).toHaveLength(1);
    chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0) + 1_000_000_000n);
    rpc.faults.add({ when: isMethod("simulateTransaction"), then: rpcError({ code: -32602 }) });
    release();
    expect(await second).toMatchObject({ signature: ((await first) as any).signature });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });
});

describe("a collect", () => {
  it("succeeds when the owner withdraws from the address at the same time", async () => {
    onNext(rpc, isMethod("simulateTransaction"), () => {
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
    onNext(rpc, isMethod("simulateTransaction"), () => {
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
    });
    expect(await collector.collect("creator")).toMatchObject({ kind: "nothing" });
    expect(sends()).toEqual([]);
  });

  it("does not start when its request has timed out", async () => {
    expect(await collector.collectTooLate("creator")).toEqual({ kind: "not-started" });
    expect(rpc.calls).toEqual([]);
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

  it("whose address holds too much for JSON's numbers has landed, but has no amounts", async () => {
    const { address } = sandbox.account("creator");
    const node = await startLyingEndpoint(sandbox);
    onTestFinished(() => node.close());
    node.lie({
      getTransaction(tellTruth) {
        const answer = tellTruth();
        if (!answer) return answer;
        const { transaction, meta } = answer;
        meta.postBalances[transaction.message.accountKeys.indexOf(address)] = 2 ** 53;
        return answer;
      },
    });
    collector = createSandboxCollector(sandbox, { rpcs: [node] });
    const outcome = await collector.collect("creator");
    const { signature } = sandbox.landedCollects()[0]!;
    expect(outcome).toMatchObject({ kind: "landed-unreadable", signature });
  });

  it("has other bytes than the last one while an endpoint goes on returning the same blockhash", async () => {
    const { creatorVault } = sandbox.account("artist001");
    const [fees, rentMinimum] = [chain.balance(creatorVault), chain.rentExemptMinimum(0)];
    const node = await startLyingEndpoint(sandbox);
    onTestFinished(() => node.close());
    let first: unknown;
    node.lie({ getLatestBlockhash: (tellTruth) => (first ??= tellTruth()) });
    collector = createSandboxCollector(sandbox, { rpcs: [node] });
    onNext(node, isMethod("sendTransaction"), () => {
      chain.setBalance(creatorVault, rentMinimum);
    });
    expect(await collector.collect("artist001")).toMatchObject({ kind: "nothing" });
    chain.setBalance(creatorVault, fees);
    expect(await collector.collect("artist001")).toMatchObject({
      ...{ kind: "collected", collected: fees - rentMinimum },
    });
    const blockhashes = sandbox.landedCollects().map(({ message }) => message.recentBlockhash);
    expect(blockhashes).toEqual([blockhashes[0], blockhashes[0]]);
  });
});

describe("a caller who has used its share", () => {
  const collected = { kind: "collected" };

  it("of the fee budget leaves the fee of a collect to one who waits for it", async () => {
    // Two fees at once for each caller, ten for all.
    const env = { FEE_BUDGET_LAMPORTS_PER_HOUR: "102000", MAX_PRIORITY_FEE_LAMPORTS: "0" };
    collector = createSandboxCollector(sandbox, { env });
    const shareUsed = { kind: "budget-spent", scope: "CALLER", isSmall: false };
    await collector.collect("artist001", "attacker");
    await collector.collect("artist002", "attacker");
    rpc.calls.length = 0;
    const release = hold(rpc, isMethod("simulateTransaction"));
    const first = collector.collect("creator", "attacker");
    await wasCalled("simulateTransaction");
    const waiting = collector.collect("creator", "honest");
    release();
    expect([await first, await waiting]).toMatchObject([shareUsed, collected]);
    expect(sandbox.landedCollectsOf("creator")).toHaveLength(1);
    expect(await collector.collect("artist003", "honest")).toMatchObject(collected);
    expect(await collector.collect("artist004", "honest")).toMatchObject(shareUsed);
  });

  it("of calls cannot start a collect, and fails nobody else's of the account", async () => {
    // 11 calls a second, and 60 for a block.
    const env = { RPC_CALLS_PER_SECOND: "16" };
    collector = createSandboxCollector(sandbox, { env, waits: { resendMs: 5 } });
    const skip = createSkipTime();
    // What follows a signature does not wait, but counts.
    rpc.faults.add({ when: isLook, times: 50, then: { status: 503, body: "" } });
    await collector.collect("artist001", "greedy");
    skip(1_000 + (1_000 * rpc.calls.length) / 11);
    await expect(collector.collect("artist002", "greedy")).rejects.toMatchObject({
      ...{ name: "NoRoomError", shortage: { scope: "CALLER" } },
    });
    const again = collector.collect("creator", "greedy");
    const honest = collector.collect("creator", "honest");
    await again.catch(() => undefined);
    expect(await honest).toMatchObject(collected);
  });
});

describe("callers who name coins, and ask while another collect of the account is prepared,", () => {
  /** Collects, naming the launcher's coins at these positions. */
  const collect = (...positions: number[]) => {
    const account = sandbox.account("launcher");
    const coins = positions.map((position) => account.coins[position]!);
    return collector.collector.collect({ account, coins }, "caller", monotonicNow());
  };
  /** Collects the first, and the others while it is held. */
  async function collectTogether(first: number[], ...others: number[][]) {
    const callsOf = (method: string) => rpc.calls.filter(isMethod(method)).length;
    const release = hold(rpc, isMethod("simulateTransaction"));
    const collects = [collect(...first)];
    await expect.poll(() => callsOf("simulateTransaction")).toBe(1);
    const reads = callsOf("getMultipleAccounts");
    collects.push(...others.map((positions) => collect(...positions)));
    // Their read is answered before the simulation.
    await expect.poll(() => callsOf("getMultipleAccounts")).toBeGreaterThan(reads);
    release();
    return Promise.all(collects);
  }

  it("share its transaction if it covers their coins", async () => {
    const outcomes = await collectTogether([0, 1], [], [1], [1, 0]);
    expect(outcomes[0]).toMatchObject({ kind: "collected", collected: 8_750_000_000n });
    for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("have collects of their own otherwise, or one of another that has their coin", async () => {
    const [first, second, third, fourth] = await collectTogether([], [0], [1], [1, 2]);
    expect(first).toMatchObject({ kind: "collected", collected: 1_250_000_000n });
    expect(second).toMatchObject({ kind: "collected", collected: 5_000_000_000n });
    expect(third).toMatchObject({ kind: "collected" });
    expect(fourth).toMatchObject({ ...third, remaining: expect.any(Array) });
    expect(sandbox.landedCollects()).toHaveLength(3);
  });
});

describe("an endpoint that refuses a transaction", () => {
  const linesOf = ({ logLines }: { logLines: readonly string[] }, text: string) =>
    logLines.filter((line) => line.includes(text));

  it("as all others do fails the collect, and gets the next one", async () => {
    const rpcs = [rpc, sandbox.secondRpc];
    const removals = rpcs.map(({ faults }) => faults.add(REFUSES_VERSION_1));
    collector = createSandboxCollector(sandbox, { rpcs });
    await expect(collector.collect("creator")).rejects.toMatchObject({
      ...{ failure: "refused", method: "simulateTransaction" },
    });
    expect(linesOf(collector, "a chain endpoint fails")).toEqual([]);
    expect(sandbox.landedCollects()).toEqual([]);
    for (const remove of removals) remove();
    rpc.calls.length = 0;
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
    expect(rpc.calls.filter(isMethod("simulateTransaction"))).toHaveLength(1);
  });
});

describe("a caller who joins a collect after its transaction has landed", () => {
  const isConfirmed = () =>
    expect
      .poll(() => {
        const [landed] = sandbox.landedCollects();
        return landed !== undefined && landed.slot <= chain.slot("finalized");
      })
      .toBe(true);
  /** Adds an endpoint that is 20 slots behind, and still has the fees that `creator` has now. */
  async function addEndpointBehind() {
    const { address, creatorVault } = sandbox.account("creator");
    const old = new Map([address, creatorVault].map((key) => [key, chain.balance(key)]));
    const behind = await startLyingEndpoint(sandbox);
    onTestFinished(() => behind.close());
    const fallBehind = (slots: number) => {
      behind.lie(
        behindBy(slots, (account, key) =>
          old.has(key) ? { ...account, lamports: old.get(key) } : account,
        ),
      );
    };
    fallBehind(20);
    collector = createSandboxCollector(sandbox, { rpcs: [rpc, behind] });
    const wasReadBehind = () =>
      expect.poll(() => behind.calls.some(isReadOf(creatorVault))).toBe(true);
    return { wasReadBehind, fallBehind, catchUp: behind.stopLying };
  }

  /** A second collect reads the endpoint that is behind; then `goOn` lets the first one end. */
  async function expectNoSuccess(
    first: Promise<unknown>,
    wasReadBehind: () => Promise<void>,
    goOn: () => void,
  ): Promise<void> {
    const second = collector.collect("creator");
    await wasReadBehind();
    goOn();
    expect(await first).toMatchObject(ALL_FEES);
    expect(await second).toMatchObject({ kind: "nothing", lastCollect: AMOUNTS });
    expect(sandbox.landedCollects()).toHaveLength(1);
  }

  it("gets no success for it, but hears of it as the last collect", async () => {
    const release = hold(rpc, isLook);
    const first = collector.collect("creator");
    await isConfirmed();
    rpc.calls.length = 0;
    const second = collector.collect("creator");
    await wasRead(sandbox.account("creator").creatorVault);
    release();
    const { signature } = sandbox.landedCollects()[0]!;
    expect(await first).toMatchObject({ ...ALL_FEES, signature });
    expect(await second).toMatchObject({ kind: "nothing", lastCollect: { ...AMOUNTS, signature } });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("gets no success either if the endpoint that answers its read is behind another one", async () => {
    const { wasReadBehind } = await addEndpointBehind();
    const release = hold(rpc, isLook);
    const first = collector.collect("creator");
    await isConfirmed();
    await collector.balances.getUnwithdrawable(sandbox.account("artist001"));
    const lift = rpc.faults.add({ when: isAccountsRead, then: "reset" });
    await expectNoSuccess(first, wasReadBehind, () => {
      lift();
      release();
    });
  });

  it("gets no success either if one endpoint is down, and the other was behind at its read", async () => {
    const skip = createSkipTime();
    const { wasReadBehind, fallBehind, catchUp } = await addEndpointBehind();
    const first = collector.collect("creator");
    await wasSent();
    rpc.faults.add({ when: ({ method }) => method !== "sendTransaction", then: "reset" });
    await isConfirmed();
    fallBehind(chain.slot("finalized") - sandbox.landedCollects()[0]!.slot + 1);
    await collector.balances.getUnwithdrawable(sandbox.account("artist001"));
    skip(3_000);
    await expectNoSuccess(first, wasReadBehind, catchUp);
  });

  it.each([1, 20])(
    "gets no success either if only an endpoint was asked before its read that is behind, by slots: %i",
    async (slots) => {
      const { wasReadBehind, fallBehind } = await addEndpointBehind();
      const release = hold(rpc, isLook);
      const first = collector.collect("creator");
      await wasSent();
      const { creatorVault } = sandbox.account("creator");
      const lift = rpc.faults.add({ when: isReadOf(creatorVault), then: "reset" });
      await isConfirmed();
      fallBehind(chain.slot("finalized") - sandbox.landedCollects()[0]!.slot + slots);
      await expectNoSuccess(first, wasReadBehind, () => {
        lift();
        release();
      });
    },
  );
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

describeWithRedis("beside another replica, a collect", () => {
  eachWithRedis();

  it("whose claim that holds waits until its deadline, and signs nothing", async () => {
    const env = { COLLECT_TIMEOUT_MS: "500" };
    const waiting = createSandboxCollector(sandbox, { redis, env });
    const claims = createClaims({ feePayer: waiting.feePayer, redis });
    const claim = await takeClaim(claims, sandbox.account("creator").address);
    expect(await waiting.collect("creator")).toEqual({ kind: "still-running" });
    await waiting.settled();
    expect(sandbox.landedCollects()).toEqual([]);
    claim.settle();
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
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

  it("whose lease expires confirms the transaction of the replica that took over, and sends none", async () => {
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

  it("whose lease expires finds nothing to collect when the other replica has finished", async () => {
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

  it("gets no success for a transaction from before its request that Redis did not show it", async () => {
    const { address, creatorVault } = sandbox.account("creator");
    const old = new Map([address, creatorVault].map((key) => [key, chain.balance(key)]));
    const release = hold(rpc, isLook);
    const first = createSandboxCollector(sandbox, { redis }).collect("creator");
    const landed = () => sandbox.landedCollects()[0];
    await expect.poll(() => (landed()?.slot ?? Infinity) <= chain.slot("finalized")).toBe(true);
    // It still shows the fees.
    const behind = await startLyingEndpoint(sandbox);
    onTestFinished(() => behind.close());
    behind.lie(
      behindBy(chain.slot("finalized") - landed()!.slot + 1, (account, key) =>
        old.has(key) ? { ...account, lamports: old.get(key) } : account,
      ),
    );
    let isFrozen = true;
    const frozenRedis: Redis = {
      ...redis,
      run(script, call) {
        if (!isFrozen || script.text !== TAKE.text) return redis.run(script, call);
        isFrozen = false;
        return Promise.resolve(undefined);
      },
    };
    const rpcs = [behind, sandbox.secondRpc];
    const other = createSandboxCollector(sandbox, { redis: frozenRedis, rpcs });
    const { signature } = landed()!;
    expect(await other.collect("creator")).toMatchObject({
      ...{ kind: "nothing", lastCollect: { ...AMOUNTS, signature } },
    });
    release();
    expect(await first).toMatchObject({ ...ALL_FEES, signature });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("that Redis stores only after it has landed is no success for a caller who asks the other", async () => {
    /** The script that writes the signed transaction, and all later ones, which Redis runs late. */
    const late: (() => void)[] = [];
    const slowRedis: Redis = {
      ...redis,
      run(script, call) {
        const { args } = script.toArguments(call);
        const isStore = args.some((value) => String(value).includes("lastValidBlockHeight"));
        if (late.length === 0 && !isStore) return redis.run(script, call);
        late.push(() => void redis.run(script, call));
        return Promise.resolve(undefined);
      },
      runLater(...call) {
        late.push(() => {
          redis.runLater(...call);
        });
      },
    };
    const slow = createSandboxCollector(sandbox, { redis: slowRedis });
    expect(await slow.collect("creator")).toMatchObject(ALL_FEES);
    const { signature } = sandbox.landedCollects()[0]!;
    let asks = 0;
    const watchedRedis: Redis = {
      ...redis,
      run(script, call) {
        if (script.text === TAKE.text) asks++;
        return redis.run(script, call);
      },
    };
    const rpcs = [sandbox.secondRpc];
    const other = createSandboxCollector(sandbox, { redis: watchedRedis, rpcs });
    const second = other.collect("creator");
    await expect.poll(() => asks).toBeGreaterThan(1);
    for (const run of late) run();
    expect(await second).toMatchObject({ kind: "nothing" });
    expect(await other.collect("creator")).toMatchObject({
      ...{ kind: "nothing", lastCollect: { ...AMOUNTS, signature } },
    });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });
});

// Counts are random without Redis: of a thousand pairs, one is equal.
it(
  "two replicas without Redis sign different transactions, so that each reports only its own landing",
  { retry: 1 },
  async () => {
    const release = hold(sandbox.rpc, isMethod("sendTransaction"));
    const replicas = [createSandboxCollector(sandbox), createSandboxCollector(sandbox)];
    const outcomes = replicas.map((replica) => replica.collect("creator"));
    const signatures = () => replicas.flatMap((replica) => replica.openSignatures());
    await expect.poll(signatures).toHaveLength(2);
    expect(new Set(signatures()).size).toBe(2);
    release();
    const kinds = (await Promise.all(outcomes)).map(({ kind }) => kind);
    expect(kinds.toSorted()).toEqual(["collected", "nothing"]);
  },
);

describe("a collect over HTTP", () => {
  let service: World;
  afterEach(async () => {
    // A failed test leaves its faults behind, and close() waits for every transaction in flight.
    service.sandbox.rpc.faults.clear();
    await service.close();
  });
  const sendsOfService = () => sendsTo(service.sandbox.rpc);

  it("shares its deadline with the other collects of its request, so that all are answered", async () => {
    service = await startWorld({ COLLECT_TIMEOUT_MS: "500" });
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

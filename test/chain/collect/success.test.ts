import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TAKE } from "../../../src/chain/collect/claims.ts";
import { CollectError } from "../../../src/chain/errors/collect-error.ts";
import type { CoinAddresses } from "../../../src/chain/launchpad/coin-addresses.ts";
import type { Redis } from "../../../src/store/redis.ts";
import {
  createSandboxCollector,
  type SandboxCollector,
} from "../../support/collector-on-sandbox.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import type { RedisServer } from "../../support/redis-server.ts";
import { behindBy, startLyingEndpoint } from "../../support/doubles/lying-endpoint.ts";
import { newMint } from "../../support/new-mint.ts";
import { rpcResult } from "../../support/rpc-answers.ts";
import {
  hold,
  isMethod,
  NEVER_MS,
  onNext,
  startTestSandbox,
  type TestSandbox,
  isAccountsRead,
  isLook,
  isReadOf,
} from "../../support/sandbox.ts";
import { addMs, monotonicNow } from "../../../src/time/monotonic.ts";

const SOL = 1_000_000_000n;
const ALL_FEES = { collected: 3_100_000_000n, newBalance: 8_300_000_000n };
const REFUSED = { status: 429, body: "" };

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const { faults } of [sandbox.rpc, sandbox.secondRpc]) faults.clear();
  await sandbox.close();
});

const isConfirmed = () =>
  expect
    .poll(() => {
      const [landed] = sandbox.landedCollects();
      return landed !== undefined && landed.slot <= sandbox.chain.slot("finalized");
    })
    .toBe(true);
/** Returns a function that counts the reads of an account. */
const readsOf = (handle: string) => {
  const { creatorVault } = sandbox.account(handle);
  return () =>
    [sandbox.rpc, sandbox.secondRpc].flatMap(({ calls }) => calls.filter(isReadOf(creatorVault)))
      .length;
};
const callsOf = (method: string) =>
  [sandbox.rpc, sandbox.secondRpc].flatMap(({ calls }) => calls.filter(isMethod(method))).length;

it("a collect's first caller does not wait for the read of another who joins", async () => {
  const collector = createSandboxCollector(sandbox);
  const confirm = hold(sandbox.rpc, isLook);
  const first = collector.collect("creator");
  await expect.poll(() => callsOf("sendTransaction")).toBeGreaterThan(0);
  const release = hold(sandbox.rpc, isMethod("getMultipleAccounts"));
  const second = collector.collect("creator");
  await expect.poll(readsOf("creator")).toBe(2);
  confirm();
  expect(await first).toMatchObject(ALL_FEES);
  release();
  expect(await second).toMatchObject({ kind: expect.any(String) });
});

describe("a caller who joins a collect after its transaction has landed", () => {
  /** Starts an endpoint that is 20 slots behind, and still has the fees that `creator` has now. */
  async function startBehind() {
    const { chain } = sandbox;
    const { address, creatorVault } = sandbox.account("creator");
    const old = new Map([address, creatorVault].map((key) => [key, chain.balance(key)]));
    const behind = await startLyingEndpoint(sandbox);
    behind.lie(
      behindBy(20, (account, key) =>
        old.has(key) ? { ...account, lamports: old.get(key) } : account,
      ),
    );
    return behind;
  }

  it("gets no success for it, but hears of it as the last collect", async () => {
    const collector = createSandboxCollector(sandbox);
    const release = hold(sandbox.rpc, isLook);
    const first = collector.collect("creator");
    await isConfirmed();
    const second = collector.collect("creator");
    await expect.poll(readsOf("creator")).toBe(2);
    release();
    const { signature } = sandbox.landedCollects()[0]!;
    expect(await first).toMatchObject({ kind: "collected", ...ALL_FEES, signature });
    expect(await second).toMatchObject({
      kind: "nothing",
      lastCollect: { ...ALL_FEES, signature },
    });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("gets no success either if the endpoint that answers its read is behind another one", async () => {
    const { rpc } = sandbox;
    const { creatorVault } = sandbox.account("creator");
    const behind = await startBehind();
    const collector = createSandboxCollector(sandbox, { rpcs: [rpc, behind] });
    const release = hold(rpc, isLook);
    const first = collector.collect("creator");
    await isConfirmed();
    await collector.balances.getUnwithdrawable(sandbox.account("artist001"));
    const lift = rpc.faults.add({ when: isAccountsRead, then: "reset" });
    const second = collector.collect("creator");
    await expect.poll(() => behind.calls.some(isReadOf(creatorVault))).toBe(true);
    lift();
    release();
    expect(await first).toMatchObject({ kind: "collected", ...ALL_FEES });
    expect(await second).toMatchObject({ kind: "nothing", lastCollect: ALL_FEES });
    expect(sandbox.landedCollects()).toHaveLength(1);
    await behind.close();
  });

  it("gets no success either if only the endpoint that is behind was asked before its read", async () => {
    const { chain, rpc } = sandbox;
    const { creatorVault } = sandbox.account("creator");
    const behind = await startBehind();
    const collector = createSandboxCollector(sandbox, { rpcs: [rpc, behind] });
    const release = hold(rpc, isLook);
    const first = collector.collect("creator");
    await expect.poll(() => callsOf("sendTransaction")).toBeGreaterThan(0);
    const lift = rpc.faults.add({ when: isReadOf(creatorVault), then: "reset" });
    chain.advanceSlots(5);
    await isConfirmed();
    const second = collector.collect("creator");
    await expect.poll(() => behind.calls.some(isReadOf(creatorVault))).toBe(true);
    lift();
    release();
    expect(await first).toMatchObject({ kind: "collected", ...ALL_FEES });
    expect(await second).toMatchObject({ kind: "nothing", lastCollect: ALL_FEES });
    expect(sandbox.landedCollects()).toHaveLength(1);
    await behind.close();
  });

  it("gets what has arrived since", async () => {
    const collector = createSandboxCollector(sandbox);
    const release = hold(sandbox.rpc, isMethod("getTransaction"));
    const first = collector.collect("creator");
    await expect.poll(() => callsOf("getTransaction")).toBe(1);
    const { creatorVault } = sandbox.account("creator");
    sandbox.chain.setBalance(creatorVault, sandbox.chain.balance(creatorVault) + SOL);
    const second = collector.collect("creator");
    release();
    expect(await first).toMatchObject({ kind: "collected", ...ALL_FEES });
    expect(await second).toMatchObject({ kind: "collected", collected: SOL });
    expect(sandbox.landedCollects()).toHaveLength(2);
  });
});

describe("a collect whose address holds too much for JSON's numbers", () => {
  it("has landed, but has no amounts", async () => {
    const { address } = sandbox.account("creator");
    const endpoint = await startLyingEndpoint(sandbox);
    endpoint.lie({
      getTransaction(tellTruth) {
        const answer = tellTruth();
        if (!answer) return answer;
        const { transaction, meta } = answer;
        meta.postBalances[transaction.message.accountKeys.indexOf(address)] = 2 ** 53;
        return answer;
      },
    });
    const collector = createSandboxCollector(sandbox, { rpcs: [endpoint] });
    const answer = await collector.collect("creator");
    expect(sandbox.landedCollects()).toHaveLength(1);
    expect(answer).toMatchObject({
      kind: "landed-unreadable",
      signature: sandbox.landedCollects()[0]!.signature,
    });
    await endpoint.close();
  });
});

describe("a unit's next transaction", () => {
  it("differs from its last one while an endpoint goes on returning the same blockhash", async () => {
    const { chain } = sandbox;
    const { creatorVault } = sandbox.account("artist001");
    const [fees, rentMinimum] = [chain.balance(creatorVault), chain.rentExemptMinimum(0)];
    const endpoint = await startLyingEndpoint(sandbox);
    let first: unknown;
    endpoint.lie({ getLatestBlockhash: (tellTruth) => (first ??= tellTruth()) });
    const collector = createSandboxCollector(sandbox, { rpcs: [endpoint] });
    onNext(endpoint, isMethod("sendTransaction"), () => {
      chain.setBalance(creatorVault, rentMinimum);
    });
    expect(await collector.collect("artist001")).toMatchObject({ kind: "nothing" });
    chain.setBalance(creatorVault, fees);
    expect(await collector.collect("artist001")).toMatchObject({
      kind: "collected",
      collected: fees - rentMinimum,
    });
    const blockhashes = sandbox.landedCollects().map(({ message }) => message.lifetimeToken);
    expect(blockhashes).toEqual([blockhashes[0], blockhashes[0]]);
    await endpoint.close();
  });
});

describeWithRedis(
  "a caller who asks after a transaction was signed, and reads before it lands",
  () => {
    let redis: Redis;
    eachWithRedis((_, newRedis) => {
      redis = newRedis;
    });

    it("gets its result, and no second transaction is sent", async () => {
      const { promise: isReleased, resolve: release } = Promise.withResolvers<undefined>();
      let isSigned = false;
      const slow: Redis = {
        ...redis,
        async run(script, call) {
          const { args } = script.toArguments(call);
          isSigned ||= args.some((value) => String(value).includes("lastValidBlockHeight"));
          if (isSigned) await isReleased;
          return redis.run(script, call);
        },
      };
      const collector = createSandboxCollector(sandbox, { redis: slow });
      const first = collector.collect("creator");
      await expect.poll(() => isSigned).toBe(true);
      const reads = () => sandbox.rpc.calls.filter(isMethod("getMultipleAccounts")).length;
      const readsBefore = reads();
      const second = collector.collect("creator");
      await expect.poll(reads).toBe(readsBefore + 1);
      release(undefined);
      const { signature } = (await first) as { signature: string };
      expect(await first).toMatchObject({ kind: "collected", ...ALL_FEES });
      expect(await second).toMatchObject({ kind: "collected", ...ALL_FEES, signature });
      expect(sandbox.landedCollects()).toHaveLength(1);
    });
  },
);

describeWithRedis("a transaction that Redis stores only after it has landed", () => {
  let server: RedisServer;
  let redis: Redis;
  /** The script that writes the signed transaction, and all later ones, which Redis runs late. */
  let late: (() => void)[];
  let signature: string;
  let other: SandboxCollector;
  eachWithRedis((newServer, newRedis) => {
    server = newServer;
    redis = newRedis;
  });
  beforeEach(async () => {
    late = [];
    const slow: Redis = {
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
    const outcome = await createSandboxCollector(sandbox, { redis: slow }).collect("creator");
    expect(outcome).toMatchObject({ kind: "collected", ...ALL_FEES });
    ({ signature } = sandbox.landedCollects()[0]!);
    other = createSandboxCollector(sandbox, { redis, rpcs: [sandbox.secondRpc] });
  });

  it("is no success for a caller who asks the other replica meanwhile", async () => {
    let asks = 0;
    const waiting: Redis = {
      ...redis,
      run(script, call) {
        if (script.text === TAKE.text) asks++;
        return redis.run(script, call);
      },
    };
    const otherWaits = createSandboxCollector(sandbox, {
      redis: waiting,
      rpcs: [sandbox.secondRpc],
    });
    const second = otherWaits.collect("creator");
    await expect.poll(() => asks).toBeGreaterThan(1);
    for (const run of late) run();
    expect(await second).toMatchObject({ kind: "nothing" });
    expect(await other.collect("creator")).toMatchObject({
      kind: "nothing",
      lastCollect: { ...ALL_FEES, signature },
    });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("is no success for a caller whose own transaction then finds the claim lost", async () => {
    const { creatorVault, address } = sandbox.account("creator");
    const claim = `tributary:v3:claim:{${other.feePayer}:${address}}`;
    await server.command("DEL", claim);
    const rentMinimum = sandbox.chain.rentExemptMinimum(0);
    sandbox.chain.setBalance(creatorVault, rentMinimum + SOL);
    const release = hold(sandbox.secondRpc, isMethod("getLatestBlockhash"));
    const second = other.collect("creator");
    await expect
      .poll(() => sandbox.secondRpc.calls.some(isMethod("getLatestBlockhash")))
      .toBe(true);
    await server.command("DEL", claim);
    late[0]!();
    await expect.poll(() => server.command("HGET", claim, "transaction")).toBeTruthy();
    sandbox.chain.setBalance(creatorVault, rentMinimum);
    release();
    expect(await second).toMatchObject({
      kind: "nothing",
      lastCollect: { ...ALL_FEES, signature },
    });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("is no success for a caller whose own transaction then moves nothing", async () => {
    const account = sandbox.account("creator");
    late[0]!();
    let isDown = true;
    const away: Redis = {
      ...redis,
      run: (...script) => (isDown ? Promise.resolve(undefined) : redis.run(...script)),
    };
    const { collector } = createSandboxCollector(sandbox, {
      redis: away,
      rpcs: [sandbox.secondRpc],
    });
    const rentMinimum = sandbox.chain.rentExemptMinimum(0);
    sandbox.chain.setBalance(account.creatorVault, rentMinimum + SOL);
    onNext(sandbox.secondRpc, isMethod("sendTransaction"), () => {
      sandbox.chain.setBalance(account.creatorVault, rentMinimum);
      isDown = false;
    });
    const coins = [sandbox.coins.addressesOf(newMint())];
    expect(await collector.collect({ account, coins }, "caller", monotonicNow())).toMatchObject({
      ...{ kind: "nothing", lastCollect: { ...ALL_FEES, signature } },
    });
    expect(sandbox.landedCollects()).toHaveLength(2);
  });
});

describe("a shareholder who asks while another one's collect distributes", () => {
  let mint: string;
  beforeEach(() => {
    mint = newMint();
    const shareholders = ["artist001", "artist002"].map((handle) => {
      const { address, creatorVault } = sandbox.account(handle);
      sandbox.chain.setBalance(address, SOL);
      sandbox.chain.setBalance(creatorVault, 0n);
      return { address, bps: 5_000 };
    });
    sandbox.coins.launch({ mint, creator: shareholders[0]!.address, kind: "shared", shareholders });
    sandbox.coins.addFees(mint, SOL);
  });
  const collect = ({ collector }: SandboxCollector, handle: string, startedAt = monotonicNow()) =>
    collector
      .collect(
        { account: sandbox.account(handle), coins: [sandbox.coins.addressesOf(mint)] },
        handle,
        startedAt,
      )
      .catch((error: unknown) => {
        if (error instanceof CollectError) return error.failure;
        throw error;
      });

  /** Someone else distributes what waits on the coin. */
  function drain(): void {
    const { curve, sharingConfig } = sandbox.coins.addressesOf(mint);
    for (const address of [curve, sharingConfig.creatorVault]) {
      const account = sandbox.chain.account(address);
      const data = Buffer.from(account?.data ?? []);
      if (address === curve) data.writeBigUInt64LE(0n, 125);
      const lamports = sandbox.chain.rentExemptMinimum(data.length);
      if (account) sandbox.chain.setAccount(address, { ...account, data, lamports });
    }
  }

  /**
   * One shareholder's distribution has landed, and its amounts are being read, when the other asks
   * for new fees.
   */
  async function askAfterLanding(collector: SandboxCollector, { reads = 1 } = {}) {
    const release = hold(sandbox.rpc, isMethod("getTransaction"));
    const first = collect(collector, "artist001");
    await expect.poll(() => callsOf("getTransaction")).toBe(reads);
    sandbox.coins.addFees(mint, SOL);
    const second = collect(collector, "artist002");
    await expect.poll(readsOf("artist002")).toBeGreaterThan(0);
    const { signature } = sandbox.landedCollects()[0]!;
    return { first, second, signature, release };
  }

  it("gets no success for a distribution that had landed", async () => {
    const { first, second, signature, release } = await askAfterLanding(
      createSandboxCollector(sandbox),
    );
    drain();
    release();
    expect(await first).toMatchObject({ kind: "collected", collected: SOL / 2n, signature });
    expect(await second).toMatchObject({
      kind: "nothing",
      lastCollect: { collected: SOL / 2n, signature },
    });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("hears its signature when the time is over, also while its amounts are read", async () => {
    const collector = createSandboxCollector(sandbox);
    // After the first look, which finds nothing, the status tells that it has landed.
    const early = { when: isMethod("getTransaction"), times: 1, then: rpcResult(null) };
    sandbox.rpc.faults.add(early);
    const asked = await askAfterLanding(collector, { reads: 2 });
    const { first, second, signature, release } = asked;
    expect(await collect(collector, "artist002", addMs(monotonicNow(), -599_900))).toEqual({
      kind: "landed-unreadable",
      signature,
    });
    release();
    expect(await Promise.all([first, second])).toMatchObject([
      { collected: SOL / 2n },
      { collected: SOL / 2n },
    ]);
  });

  it.each([
    ["hears that its outcome is unknown", 300_000],
    ["hears that its outcome is unknown, also after the collect's deadline", 600_001],
  ])("%s", async (_, skippedMs) => {
    const collector = createSandboxCollector(sandbox, {
      rpcs: [sandbox.rpc, sandbox.secondRpc],
      waits: { unknownAfterMs: 300_000 },
    });
    const later = addMs(monotonicNow(), 600_000);
    for (const { faults } of [sandbox.rpc, sandbox.secondRpc])
      faults.add({ when: isMethod("sendTransaction"), then: REFUSED });
    const first = collect(collector, "artist001", later);
    await expect.poll(() => collector.openSignatures()).toHaveLength(1);
    const [signature] = collector.openSignatures();
    const second = collect(collector, "artist002", later);
    await expect.poll(readsOf("artist002")).toBeGreaterThan(0);
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + skippedMs);
    drain();
    const unknown = { kind: "unknown", signature };
    expect(await Promise.all([first, second])).toEqual([unknown, unknown]);
  });

  describeWithRedis("at another replica", () => {
    let server: RedisServer;
    let redis: Redis;
    eachWithRedis((newServer, newRedis) => {
      server = newServer;
      redis = newRedis;
    });

    /** Takes the coin's claim for a replica that never signs; returns the claim's key. */
    async function takeClaim(feePayer: string, { sharingConfig }: CoinAddresses): Promise<string> {
      const claim = `tributary:v3:claim:{${feePayer}:${sharingConfig.address}}`;
      await server.command("HSET", claim, "token", "another");
      return claim;
    }

    it("waits while that has the coin's claim: nothing is sent that is not stored under all claims", async () => {
      const collector = createSandboxCollector(sandbox, { redis });
      const release = hold(sandbox.rpc, isMethod("getLatestBlockhash"));
      const outcome = collect(collector, "artist001");
      await expect.poll(() => callsOf("getLatestBlockhash")).toBeGreaterThan(0);
      const claim = await takeClaim(collector.feePayer, sandbox.coins.addressesOf(mint));
      release();
      await expect.poll(() => server.command("HGET", claim, "asked")).toBe("1");
      expect(callsOf("sendTransaction")).toBe(0);
      await server.command("DEL", claim);
      expect(await outcome).toMatchObject({ kind: "collected", collected: SOL / 2n });
      expect(sandbox.landedCollects()).toHaveLength(1);
    });

    it("keeps no other coin's claim while it waits", async () => {
      const [first, second] = [0, 1].map(() => createSandboxCollector(sandbox, { redis }));
      const shareholders = ["artist001", "artist002"].map((handle) => ({
        ...{ address: sandbox.account(handle).address, bps: 5_000 },
      }));
      const [free, busy] = [newMint(), newMint()].toSorted().map((each) => {
        const creator = shareholders[0]!.address;
        sandbox.coins.launch({ mint: each, creator, kind: "shared", shareholders, fees: SOL });
        return sandbox.coins.addressesOf(each);
      });
      const claim = await takeClaim(first!.feePayer, busy!);
      const collectCoins = (
        { collector }: SandboxCollector,
        handle: string,
        coins: CoinAddresses[],
      ) => collector.collect({ account: sandbox.account(handle), coins }, handle, monotonicNow());
      const waiting = collectCoins(first!, "artist001", [free!, busy!]);
      await expect.poll(() => server.command("HGET", claim, "asked")).toBe("1");
      expect(await collectCoins(second!, "artist002", [free!])).toMatchObject({
        collected: SOL / 2n,
      });
      await server.command("DEL", claim);
      expect(await waiting).toMatchObject({ kind: "collected", collected: SOL / 2n });
    });

    it("does not fail a plain collect that joined if it times out", async () => {
      const env = { COLLECT_TIMEOUT_MS: String(NEVER_MS) };
      const { collector } = createSandboxCollector(sandbox, { redis, env });
      const account = sandbox.account("artist001");
      sandbox.chain.setBalance(account.creatorVault, sandbox.chain.rentExemptMinimum(0) + SOL);
      const coins = [sandbox.coins.addressesOf(mint)];
      const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
      const stranger = collector.collect({ account, coins }, "stranger", monotonicNow());
      const failed = expect(stranger).rejects.toThrow();
      await expect.poll(() => callsOf("simulateTransaction")).toBe(1);
      const startedAt = monotonicNow();
      const now = performance.now.bind(performance);
      // With a later time, the caller outlasts the collect.
      const joined = collector.collect({ account, coins: [] }, "owner", addMs(startedAt, NEVER_MS));
      vi.spyOn(performance, "now").mockImplementation(() => now() + NEVER_MS);
      release();
      expect(await joined).toMatchObject({ kind: "collected", collected: SOL });
      await failed;
    });

    it("gets what its vault holds, and no plain collect waits", async () => {
      const collector = createSandboxCollector(sandbox, { redis });
      await takeClaim(collector.feePayer, sandbox.coins.addressesOf(mint));
      const account = sandbox.account("artist001");
      sandbox.chain.setBalance(account.creatorVault, sandbox.chain.rentExemptMinimum(0) + SOL);
      expect(await collect(collector, "artist001")).toMatchObject({
        ...{ kind: "collected", collected: SOL, remaining: [{ mint, amount: SOL / 2n }] },
      });
      sandbox.chain.setBalance(account.creatorVault, sandbox.chain.rentExemptMinimum(0) + SOL);
      expect(await collector.collect("artist001")).toMatchObject({ collected: SOL });
    });

    it("hears that it landed, although its amounts cannot be read", async () => {
      const signer = createSandboxCollector(sandbox, { redis, rpcs: [sandbox.secondRpc] });
      const other = createSandboxCollector(sandbox, { redis, env: { COLLECT_TIMEOUT_MS: "3000" } });
      sandbox.secondRpc.faults.add({ when: isMethod("sendTransaction"), then: REFUSED });
      sandbox.rpc.faults.add({ when: isMethod("getTransaction"), then: REFUSED });
      const first = collect(signer, "artist001");
      await expect.poll(() => signer.openSignatures()).toHaveLength(1);
      const [signature] = signer.openSignatures();
      const second = await collect(other, "artist002");
      expect(second).toMatchObject({ kind: "landed-unreadable", signature });
      expect(await first).toMatchObject({ kind: "collected", signature });
    });
  });
});

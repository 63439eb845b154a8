import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CollectError } from "../../src/chain/collect-error.ts";
import type { CoinAddresses } from "../../src/chain/launchpad/coin-addresses.ts";
import { createSandboxCollector, type SandboxCollector } from "../support/collector-on-sandbox.ts";
import { newMint } from "../support/new-mint.ts";
import { hold, isMethod, onNext, startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { startWorld } from "../support/world.ts";

const GREEDY = fileURLToPath(new URL("../support/programs/greedy-launchpad.so", import.meta.url));
const SOL = 1_000_000_000n;
const STRANGER = "192.0.2.0/24";
const OWNER = "198.51.100.0/24";

let sandbox: TestSandbox;
let collector: SandboxCollector;
async function start(launchpadFile?: string) {
  sandbox = await startTestSandbox(launchpadFile ? { launchpadFile } : {});
  // Longer than any test, however slow the machine is.
  collector = createSandboxCollector(sandbox, { env: { RPC_TIMEOUT_MS: "600000" } });
}
afterEach(() => sandbox.close());

const account = () => sandbox.account("creator");
/** A new coin of the account, on which a SOL waits. */
function launch(): CoinAddresses {
  const mint = newMint();
  sandbox.coins.launch({ mint, creator: account().address, fees: SOL });
  return sandbox.coins.addressesOf(mint);
}
/** Collects the account and these coins. Returns the outcome, or the failure of a CollectError. */
const collect = (block: string, coins: readonly CoinAddresses[] = []) =>
  collector.collector
    .collect({ account: account(), coins }, block, performance.now())
    .catch((error: unknown) => {
      if (error instanceof CollectError) return error.failure;
      throw error;
    });
/** Makes the coin's sweep fail once its transaction is sent, although its simulation succeeds. */
function failWhenSent({ curve }: CoinAddresses): void {
  onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
    const { lamports, owner, data } = sandbox.chain.account(curve)!;
    sandbox.chain.setAccount(curve, { lamports, owner, data: Buffer.alloc(data.length) });
  });
}
const repair = (coin: CoinAddresses) => {
  sandbox.coins.launch({ mint: coin.mint, creator: account().address, fees: SOL });
};

describe("a coin that a stranger names and whose sweep fails on the chain", () => {
  beforeEach(() => start());

  it("backs off alone: the owner's plain collect, and other coins, are collected", async () => {
    const [bad, good] = [launch(), launch()];
    failWhenSent(bad);
    expect(await collect(STRANGER, [good, bad])).toMatchObject({
      kind: "failed-on-chain",
      mints: [bad.mint],
    });
    repair(bad);
    expect(await collect(OWNER)).toMatchObject({ kind: "collected", collected: 3_100_000_000n });
    expect(await collect(OWNER, [good, bad])).toMatchObject({ kind: "collected", collected: SOL });
  });

  it("is refused while nothing else could be collected; an empty account still has nothing", async () => {
    const bad = launch();
    failWhenSent(bad);
    await collect(STRANGER, [bad]);
    repair(bad);
    expect(await collect(OWNER)).toMatchObject({ kind: "collected" });
    expect(await collect(OWNER, [bad])).toEqual({ kind: "coins-backing-off", leftMs: expect.any(Number) });
    expect(await collect(OWNER)).toMatchObject({ kind: "nothing" });
    expect(sandbox.landedCollects()).toHaveLength(2);
  });

  it("does not fail the owner's collect that joins the stranger's", async () => {
    const bad = launch();
    failWhenSent(bad);
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const stranger = collect(STRANGER, [bad]);
    await expect.poll(() => sandbox.rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
    const owner = collect(OWNER);
    release();
    expect(await stranger).toMatchObject({ kind: "failed-on-chain" });
    expect(await owner).toMatchObject({ kind: "collected", collected: 3_100_000_000n });
  });

  it("makes its block's collects of the account leave out coins after the third, but not others'", async () => {
    for (let i = 0; i < 3; i++) {
      const bad = launch();
      failWhenSent(bad);
      expect(await collect(STRANGER, [bad])).toMatchObject({ kind: "failed-on-chain" });
    }
    const good = launch();
    expect(await collect(STRANGER, [good])).toMatchObject({ collected: 3_100_000_000n });
    expect(await collect(STRANGER, [good])).toMatchObject({ kind: "coins-backing-off" });
    expect(await collect(OWNER, [good])).toMatchObject({ kind: "collected", collected: SOL });
  });

  it("does not keep the owner from naming a coin beside a stranger who may not", async () => {
    for (let i = 0; i < 3; i++) {
      const bad = launch();
      failWhenSent(bad);
      await collect(STRANGER, [bad]);
    }
    const good = launch();
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const stranger = collect(STRANGER, [good]);
    await expect.poll(() => sandbox.rpc.calls.filter(isMethod("simulateTransaction")).length).toBe(4);
    const owner = collect(OWNER, [good]);
    release();
    expect(await stranger).toMatchObject({ collected: 3_100_000_000n });
    expect(await owner).toMatchObject({ kind: "collected", collected: SOL });
  });
});

describe("a transaction with coins that fails at none of them", () => {
  beforeEach(() => start(GREEDY));

  it("backs off all of its coins, and not the account", async () => {
    const coins = [launch(), launch()];
    onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
      const { lamports, owner, data } = sandbox.chain.account(coins[0]!.curve)!;
      const greedy = Buffer.from(data);
      greedy.writeBigUInt64LE(SOL, 133);
      sandbox.chain.setAccount(coins[0]!.curve, { lamports, owner, data: greedy });
    });
    const failure = await collect(STRANGER, coins);
    expect(failure).toMatchObject({ kind: "failed-on-chain" });
    const named = coins.map(({ mint }) => mint);
    expect(failure).toMatchObject({
      mints: expect.toSatisfy(
        (mints: string[]) => mints.length === 2 && named.every((mint) => mints.includes(mint)),
      ),
    });
    expect(await collect(OWNER, coins)).toMatchObject({ collected: 3_100_000_000n });
  });
});

describe("over REST", () => {
  it("a collect of nothing but coins that back off has Retry-After", async () => {
    const world = await startWorld();
    sandbox = world.sandbox;
    const bad = launch();
    failWhenSent(bad);
    const { id } = account();
    const name = () =>
      world.request("/collect", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ socialId: id, mints: [bad.mint] }),
      });
    const failed = await name();
    expect([failed.body.error, failed.headers.get("retry-after")]).toEqual(["COLLECT_FAILED", null]);
    repair(bad);
    expect((await world.collect(id)).body.collected).toBe("3.1000");
    const refused = await name();
    expect([refused.status, refused.body.error]).toEqual([500, "COLLECT_FAILED"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60);
    await world.close();
  });
});

import { fileURLToPath } from "node:url";
import { PublicKey } from "@solana/web3.js";
import { afterEach, beforeEach, describe, expect, vi } from "vitest";
import { CollectError } from "../../src/chain/errors/collect-error.ts";
import type { CoinAddresses } from "../../src/chain/launchpad/coin-addresses.ts";
import { LAUNCHPAD_FEES_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import { from } from "../support/client.ts";
import { createSandboxCollector, type SandboxCollector } from "../support/collector-on-sandbox.ts";
import { chain, sandbox, withNewSandbox, withNewWorld, world } from "../support/fixtures.ts";
import { newMint } from "../support/new-mint.ts";
import { rpcError, rpcResult } from "../support/rpc-answers.ts";
import { hold, isMethod, NEVER_MS, onNext } from "../support/sandbox.ts";
import { createSkipTime } from "../support/skip-time.ts";
import { monotonicNow } from "../../src/time/monotonic.ts";

const GREEDY = fileURLToPath(new URL("../support/programs/greedy-launchpad.so", import.meta.url));
const SOL = 1_000_000_000n;
const STRANGER = "192.0.2.0/24";
const OWNER = "198.51.100.0/24";
/** No transaction can write to it, so it fails a distribution to it. */
const SYSVAR = "SysvarRent111111111111111111111111111111111";

const it = withNewSandbox();
const withGreedyProgram = withNewSandbox({ launchpadFile: GREEDY });
const withTrustedCaller = withNewWorld({ TRUSTED_CALLERS: "192.0.2.7" });
let collector: SandboxCollector;
beforeEach(() => {
  // Many tests have a fault at the next transaction that is sent.
  collector = createSandboxCollector(sandbox, { waits: { resendMs: NEVER_MS } });
});

const account = () => sandbox.account("creator");
/** A new coin of the account, on which fees wait. */
function launch(fees = SOL): CoinAddresses {
  const mint = newMint();
  sandbox.coins.launch({ mint, creator: account().address, fees });
  return sandbox.coins.addressesOf(mint);
}
/**
 * A new coin on which a SOL waits, and of which an address or a handle has `bps` ten-thousandths.
 * By default what arrives there is less than an empty account's rent-exempt minimum.
 */
function share(other: string, bps = 1): CoinAddresses {
  const mint = newMint();
  const known = sandbox.accounts.find(({ handle }) => handle === other);
  const shareholders = [
    { address: account().address, bps: 10_000 - bps },
    { address: known?.address ?? other, bps },
  ];
  sandbox.coins.launch({
    mint,
    creator: account().address,
    shareholders,
    fees: SOL,
  });
  return sandbox.coins.addressesOf(mint);
}
const newAddress = () => PublicKey.unique().toBase58();
/** Collects the account and these coins. Returns the outcome, or the failure of a CollectError. */
const collect = (block: string, coins: readonly CoinAddresses[] = []) =>
  collector.collector
    .collect({ account: account(), coins }, block, monotonicNow())
    .catch((error: unknown) => {
      if (error instanceof CollectError) return error.failure;
      throw error;
    });
/**
 * The owner's plain collect joins the stranger's collect of the coin before it is simulated.
 * Returns both outcomes.
 */
async function collectTogether(coin: CoinAddresses) {
  const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
  const stranger = collect(STRANGER, [coin]);
  await expect.poll(() => sandbox.rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
  const owner = collect(OWNER);
  release();
  return Promise.all([stranger, owner]);
}
/** Makes the coin's sweep fail once its transaction is sent, although its simulation succeeds. */
function failWhenSent({ curve }: CoinAddresses): void {
  onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
    const { lamports, owner, data } = chain.account(curve)!;
    chain.setAccount(curve, { lamports, owner, data: Buffer.alloc(data.length) });
  });
}
const repair = (coin: CoinAddresses) => {
  sandbox.coins.launch({ mint: coin.mint, creator: account().address, fees: SOL });
};

describe("a coin that a stranger names and whose sweep fails on the chain", () => {
  it("backs off alone: the owner's plain collect, and other coins, are collected", async () => {
    const [bad, good] = [launch(), launch()];
    failWhenSent(bad);
    expect(await collect(STRANGER, [good, bad])).toMatchObject({ kind: "failed-on-chain" });
    repair(bad);
    expect(await collect(OWNER)).toMatchObject({ kind: "collected", collected: 3_100_000_000n });
    expect(await collect(OWNER, [good, bad])).toMatchObject({ kind: "collected", collected: SOL });
    expect(await collect(OWNER, [bad])).toEqual({
      kind: "backing-off",
      leftMs: expect.any(Number),
    });
    expect(await collect(OWNER)).toMatchObject({ kind: "nothing" });
    expect(sandbox.landedCollects()).toHaveLength(3);
  });

  it("costs two simulations with nine others, if the node names none: the second has no coins", async () => {
    const coins = Array.from({ length: 10 }, () => launch());
    const value = { err: "CallChainTooDeep", logs: [], unitsConsumed: 1_000, accounts: null };
    sandbox.rpc.faults.add({
      when: isMethod("simulateTransaction"),
      then: (request) => rpcResult({ context: { slot: chain.slot("finalized") }, value })(request),
    });
    expect(await collect(STRANGER, coins)).toMatchObject({ kind: "simulation-failed" });
    expect(sandbox.rpc.calls.filter(isMethod("simulateTransaction"))).toHaveLength(2);
  });

  it("does not fail the owner's collect that joins the stranger's", async () => {
    const bad = launch();
    failWhenSent(bad);
    const [stranger, owner] = await collectTogether(bad);
    expect(stranger).toMatchObject({ kind: "failed-on-chain" });
    expect(owner).toMatchObject({ kind: "collected", collected: 3_100_000_000n });
  });

  it("does not fail the owner's collect that joins the stranger's when the transaction expires", async () => {
    const { rpc } = sandbox;
    collector = createSandboxCollector(sandbox);
    const isSend = isMethod("sendTransaction");
    const isFirst = (call: (typeof rpc.calls)[number]) =>
      isSend(call) && call.params[0] === rpc.calls.find(isSend)!.params[0];
    rpc.faults.add({ when: isFirst, then: rpcError({ code: -32005 }) });
    const stranger = collect(STRANGER, [launch()]);
    await expect.poll(() => rpc.calls.some(isSend)).toBe(true);
    const owner = collect(OWNER);
    chain.advanceSlots(200);
    expect(await stranger).toMatchObject({ kind: "expired" });
    expect(await owner).toMatchObject({ kind: "collected", collected: 3_100_000_000n });
  });

  it("does not fail the owner's collect that joins the stranger's when the fee budget refuses the rent", async () => {
    collector = createSandboxCollector(sandbox, {
      env: { FEE_BUDGET_LAMPORTS_PER_HOUR: "12000", MAX_PRIORITY_FEE_LAMPORTS: "0" },
    });
    const coin = launch();
    sandbox.coins.migrate(coin.mint, SOL);
    chain.setBalance(account().ammVault, 0n);
    const [stranger, owner] = await collectTogether(coin);
    expect(stranger).toMatchObject({ kind: "budget-spent" });
    expect(owner).toMatchObject({ kind: "collected" });
  });

  it("makes its block's collects of the account leave out coins for a minute, but not others'", async () => {
    const skipTime = createSkipTime();
    const [bad, good, later] = [launch(), launch(), launch()];
    failWhenSent(bad);
    expect(await collect(STRANGER, [bad])).toMatchObject({ kind: "failed-on-chain" });
    expect(await collect(STRANGER, [good])).toMatchObject({ collected: 3_100_000_000n });
    expect(await collect(STRANGER, [good])).toMatchObject({ kind: "backing-off" });
    expect(await collect(OWNER, [good])).toMatchObject({ kind: "collected", collected: SOL });
    skipTime(61_000);
    expect(await collect(STRANGER, [later])).toMatchObject({ kind: "collected", collected: SOL });
  });

  it("does not keep the owner from naming a coin beside a stranger who may not", async () => {
    const [bad, good] = [launch(), launch()];
    failWhenSent(bad);
    await collect(STRANGER, [bad]);
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const stranger = collect(STRANGER, [good]);
    await expect
      .poll(() => sandbox.rpc.calls.filter(isMethod("simulateTransaction")).length)
      .toBe(2);
    const owner = collect(OWNER, [good]);
    release();
    expect(await stranger).toMatchObject({ collected: 3_100_000_000n });
    expect(await owner).toMatchObject({ kind: "collected", collected: SOL });
  });
});

describe("coins that fail in the simulation", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const setVault = (fees: bigint) => {
    chain.setBalance(account().creatorVault, chain.rentExemptMinimum(0) + fees);
  };
  /** A coin whose curve records fees that it does not hold. */
  function launchFailing(): CoinAddresses {
    const coin = launch();
    const curve = chain.account(coin.curve)!;
    chain.setAccount(coin.curve, { ...curve, lamports: SOL / 2n });
    return coin;
  }
  const shareFailing = () => share(SYSVAR, 5_000);
  const ten = (launchOne: () => CoinAddresses) => Array.from({ length: 10 }, launchOne);
  let blocks = 0;
  /** Each time from another block. */
  const collectAgain = (coins: readonly CoinAddresses[]) =>
    collect(`203.0.${blocks++}.0/24`, coins);
  const simulations = () => sandbox.rpc.calls.filter(isMethod("simulateTransaction")).length;

  it("cost at most two reads, and three simulations with their prices and blockhashes, before others are collected", async () => {
    setVault(SOL);
    const coins = ten(launchFailing);
    expect(await collectAgain(coins)).toMatchObject({ kind: "collected", collected: SOL });
    const { calls } = sandbox.rpc;
    const before = calls.slice(0, calls.findIndex(isMethod("sendTransaction")));
    for (const [method, most] of [
      ["getMultipleAccounts", 2],
      ["simulateTransaction", 3],
      ["getRecentPrioritizationFees", 3],
      ["getLatestBlockhash", 3],
    ] as const)
      expect([method, before.filter(isMethod(method)).length <= most]).toEqual([method, true]);
  });

  it("do not hold back collects without coins: only one of these that fails does", async () => {
    setVault(SOL);
    // The launch platform pays no account of this owner.
    const ofPlatform = { lamports: SOL, owner: LAUNCHPAD_FEES_PROGRAM_ID, data: Buffer.alloc(0) };
    chain.setAccount(account().address, ofPlatform);
    const counts: number[] = [];
    for (const coins of [[launch()], [], []]) {
      const before = simulations();
      expect(await collectAgain(coins)).toMatchObject({ kind: "simulation-failed" });
      counts.push(simulations() - before);
    }
    expect(counts).toEqual([2, 1, 0]);
  });

  it("and have distributions are tried two at the most, each in one simulation", async () => {
    setVault(0n);
    const coins = ten(shareFailing);
    const before = simulations();
    await collectAgain(coins);
    expect(simulations()).toBe(before + 2);
  });

  it.each([
    ["sweeps", launchFailing],
    ["distributions", shareFailing],
  ])(
    "whose %s failed are left out for ten seconds: the vault and a good coin take one simulation",
    async (_, launchOne) => {
      setVault(0n);
      const coins = ten(launchOne);
      vi.spyOn(performance, "now").mockReturnValue(performance.now());
      // A collect tries only two of them, and the next one may try others.
      for (let i = 0; i < coins.length; i++) await collectAgain(coins);
      setVault(SOL);
      const before = simulations();
      const named = [launch(), ...coins.slice(0, 9)];
      expect(await collectAgain(named)).toMatchObject({ collected: 2n * SOL });
      expect(simulations()).toBe(before + 1);
    },
  );
});

describe("a distribution whose shareholder is emptied before it lands", () => {
  it("backs off alone, for all shareholders: no other coin does", async () => {
    const { creatorVault } = account();
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
    const other = newAddress();
    chain.setBalance(other, SOL);
    const [good, bad] = [share("artist002", 5_000), share(other)];
    onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
      chain.setBalance(other, 0n);
    });
    const outcome = await collect(STRANGER, [good, bad]);
    const [landed] = sandbox.landedCollects();
    expect(landed!.message.accountKeys).toContain(bad.curve);
    expect(outcome).toEqual({ kind: "nothing-received", signature: landed!.signature });
    expect(await collect(OWNER, [bad])).toMatchObject({ kind: "backing-off" });
    expect(await collect(OWNER, [good, bad])).toMatchObject({ collected: SOL / 2n });
    expect(sandbox.landedCollects().map(({ err }) => err)).toEqual([null, null]);
  });
});

describe("a transaction with coins that fails at none of them", () => {
  /** Makes the coin's sweep cost the fee payer a SOL, once its transaction is sent. */
  function overchargeWhenSent({ curve }: CoinAddresses): void {
    onNext(sandbox.rpc, isMethod("sendTransaction"), () => {
      const { lamports, owner, data } = chain.account(curve)!;
      const greedy = Buffer.from(data);
      greedy.writeBigUInt64LE(SOL, 133);
      chain.setAccount(curve, { lamports, owner, data: greedy });
    });
  }

  withGreedyProgram("makes all its coins back off for a minute, but not the vault", async () => {
    const skipTime = createSkipTime();
    const [good, bad] = [launch(), launch(2n * SOL)];
    overchargeWhenSent(bad);
    expect(await collect(STRANGER, [good, bad])).toMatchObject({ kind: "failed-on-chain" });
    repair(bad);
    expect(await collect(OWNER, [good, bad])).toMatchObject({ collected: 3_100_000_000n });
    expect(await collect(OWNER, [good])).toMatchObject({ kind: "backing-off" });
    skipTime(61_000);
    expect(await collect(OWNER, [good, bad])).toMatchObject({ collected: 2n * SOL });
  });
});

describe("a caller whose collect follows beside those of strangers", () => {
  it("is paid although the strangers' coins all fail", async () => {
    const { creatorVault } = account();
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
    const good = launch();
    const bad = Array.from({ length: 9 }, () => share(SYSVAR));
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const first = collect(STRANGER, bad.slice(8));
    await expect.poll(() => sandbox.rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
    const second = collect("203.0.113.0/24", bad.slice(0, 8));
    const owner = collect(OWNER, [good]);
    release();
    expect(await owner).toMatchObject({ kind: "collected", collected: SOL });
    expect(await first).toMatchObject({ kind: "simulation-failed" });
    expect(await second).toMatchObject({ kind: "simulation-failed" });
  });

  it("is paid although a stranger's larger coins leave no room in the transaction that it joins", async () => {
    const good = launch();
    const large = Array.from({ length: 18 }, () => launch(2n * SOL));
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const stranger = collect(STRANGER, [good, ...large]);
    await expect.poll(() => sandbox.rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
    const owner = collect(OWNER, [good]);
    release();
    expect(await stranger).toMatchObject({
      remaining: expect.arrayContaining([{ mint: good.mint, amount: SOL }]),
    });
    expect(await owner).toMatchObject({ kind: "collected", collected: SOL, remaining: [] });
  });
});

describe("behind a trusted caller", () => {
  withTrustedCaller("each visitor's failures count for the visitor alone", async () => {
    const { id } = account();
    const name = async (visitor: string, { mint }: CoinAddresses) =>
      (await world.collect(id, from(`${visitor}, 192.0.2.7`), [mint])).body;
    const bad = launch();
    failWhenSent(bad);
    expect(await name("198.51.100.1", bad)).toMatchObject({ error: "COLLECT_FAILED" });
    const good = launch();
    expect(await name("198.51.100.2", good)).toMatchObject({ collected: "3.1000" });
    expect(await name("203.0.113.1", good)).toMatchObject({ collected: "1.0000" });
  });
});

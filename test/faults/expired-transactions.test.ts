import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createSandboxCollector,
  type ChainRpc,
  type SandboxCollector,
} from "../support/collector-on-sandbox.ts";
import { newMint } from "../support/new-mint.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import {
  isMethod,
  SHORT_AGREEMENT,
  startTestSandbox,
  type TestSandbox,
  isLook,
} from "../support/sandbox.ts";
import { monotonicNow } from "../../src/time/monotonic.ts";

/** The budget of one transaction. */
const ONE_FEE = { FEE_BUDGET_LAMPORTS_PER_HOUR: "12000", MAX_PRIORITY_FEE_LAMPORTS: "0" };
const SOL = 1_000_000_000n;
const COLLECTED = { kind: "collected", collected: 3_100_000_000n };

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
});
afterEach(async () => {
  for (const rpc of [sandbox.rpc, sandbox.secondRpc]) rpc.faults.clear();
  await sandbox.close();
});

/** Starts a collect at endpoints that accept its transaction and drop it. */
async function startDropped(collector: SandboxCollector, rpcs: readonly ChainRpc[]) {
  for (const { faults } of rpcs)
    faults.add({ when: isMethod("sendTransaction"), then: rpcResult("dropped") });
  const collect = collector.collect("creator");
  await expect.poll(() => sandbox.rpc.calls.some(isMethod("sendTransaction"))).toBe(true);
  return { collect, signature: collector.openSignatures()[0] };
}

describe("a transaction that one endpoint reports as expired while the other is silent", () => {
  it("is reported as unknown with its signature, keeps its fee, and does not keep the account locked", async () => {
    const rpcs = [sandbox.rpc, sandbox.secondRpc];
    const env = { ...ONE_FEE, FEE_BUDGET_LAMPORTS_PER_HOUR: "20400" };
    const collector = createSandboxCollector(sandbox, {
      rpcs,
      env,
      waits: SHORT_AGREEMENT,
    });
    const { collect, signature } = await startDropped(collector, rpcs);
    sandbox.secondRpc.faults.clear();
    sandbox.secondRpc.faults.add({ then: { status: 429, body: "" } });
    sandbox.chain.advanceSlots(200);
    expect(await collect).toEqual({ kind: "unknown", signature });
    for (const { faults } of rpcs) faults.clear();
    expect(await collector.collect("creator", "other")).toMatchObject(COLLECTED);
    expect(await collector.collect("artist001", "another")).toMatchObject({ kind: "budget-spent" });
  });
});

describe("after a transaction with a coin expired", () => {
  const vaultFees = 200_000n;

  it("the next one has the coin again, if the address cannot receive the vault's fees alone", async () => {
    const { address, creatorVault } = sandbox.account("creator");
    const mint = newMint();
    sandbox.chain.setBalance(address, 0n);
    sandbox.chain.setBalance(creatorVault, sandbox.chain.rentExemptMinimum(0) + vaultFees);
    sandbox.coins.launch({ mint, creator: address, fees: SOL });
    const { collector, openSignatures } = createSandboxCollector(sandbox);
    const wallet = {
      account: sandbox.account("creator"),
      coins: [sandbox.coins.addressesOf(mint)],
    };
    const collect = () => collector.collect(wallet, "caller", monotonicNow());
    const lift = sandbox.rpc.faults.add({
      when: isMethod("sendTransaction"),
      then: rpcResult("dropped"),
    });
    const dropped = collect();
    await expect.poll(openSignatures).toHaveLength(1);
    sandbox.chain.advanceSlots(200);
    await expect(dropped).rejects.toMatchObject({ failure: { kind: "expired" } });
    lift();
    expect(await collect()).toMatchObject({ kind: "collected", collected: SOL + vaultFees });
  });
});

describe("the fee of a transaction that was dropped until it expired", () => {
  it("returns to the budget when two endpoints report so, and the next collect succeeds", async () => {
    const rpcs = [sandbox.rpc, sandbox.secondRpc];
    const collector = createSandboxCollector(sandbox, { rpcs, env: ONE_FEE });
    const { collect, signature } = await startDropped(collector, rpcs);
    sandbox.chain.advanceSlots(200);
    expect(await collect).toEqual({ kind: "expired", signature });
    for (const { faults } of rpcs) faults.clear();
    expect(await collector.collect("creator")).toMatchObject(COLLECTED);
    expect(await collector.collect("artist001")).toMatchObject({ kind: "budget-spent" });
  });

  it("stays spent with a single endpoint, which may lie", async () => {
    const collector = createSandboxCollector(sandbox, { env: ONE_FEE });
    const { collect, signature } = await startDropped(collector, [sandbox.rpc]);
    sandbox.chain.advanceSlots(200);
    expect(await collect).toEqual({ kind: "expired", signature });
    sandbox.rpc.faults.clear();
    expect(await collector.collect("creator")).toMatchObject({ kind: "budget-spent" });
  });

  it("stays spent when one of two endpoints hides that it landed", async () => {
    const rpcs = [sandbox.rpc, sandbox.secondRpc];
    const collector = createSandboxCollector(sandbox, { rpcs, env: ONE_FEE });
    sandbox.rpc.faults.add({
      when: isLook,
      then: rpcResult({ context: { slot: 10 ** 9 }, value: [null] }),
    });
    const collect = collector.collect("creator");
    await expect.poll(sandbox.landedCollects).toHaveLength(1);
    sandbox.chain.advanceSlots(200);
    await collect;
    sandbox.rpc.faults.clear();
    expect(await collector.collect("artist001")).toMatchObject({ kind: "budget-spent" });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });
});

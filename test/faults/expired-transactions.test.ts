import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSandboxCollector } from "../support/collector-on-sandbox.ts";
import { newMint } from "../support/new-mint.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { createSkipTime } from "../support/skip-time.ts";
import { isMethod, startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { monotonicNow } from "../../src/time/monotonic.ts";

const SOL = 1_000_000_000n;

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
});
afterEach(() => sandbox.close());

describe("after a transaction with a coin expired", () => {
  const vaultFees = 200_000n;

  it("the coin waits for a minute, also if the address cannot receive the vault's fees alone", async () => {
    const skipTime = createSkipTime();
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
    await expect(collect()).rejects.toMatchObject({ failure: { kind: "backing-off" } });
    skipTime(61_000);
    expect(await collect()).toMatchObject({ kind: "collected", collected: SOL + vaultFees });
  });
});

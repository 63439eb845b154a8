import { expect } from "vitest";
import { createSandboxCollector } from "../support/collector-on-sandbox.ts";
import {
  describeWithRedis,
  eachWithRedis,
  FROZEN,
  redis,
  server,
} from "../support/describe-with-redis.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { hold, isMethod } from "../support/sandbox.ts";
import { chain, sandbox, withNewWorld } from "../support/fixtures.ts";

const it = withNewWorld();

describeWithRedis("a fee payer that can pay for three more collects", () => {
  eachWithRedis(FROZEN);

  it("signs no fourth, however slowly Redis counts the fees of the first three", async () => {
    const collector = createSandboxCollector(sandbox, { redis });
    chain.setBalance(collector.feePayer, chain.rentExemptMinimum(0) + 3n * 5_100n);
    const removeFault = sandbox.rpc.faults.add({
      when: isMethod("sendTransaction"),
      then: rpcResult("dropped"),
    });
    const result = {
      context: { slot: chain.slot("finalized") },
      value: { err: "AccountInUse", logs: [] },
    };
    // So that no accounts share a transaction.
    sandbox.rpc.faults.add({
      when: ({ method, params }) =>
        method === "simulateTransaction" && (params[1] as any).accounts.addresses.length > 2,
      then: rpcResult(result),
    });
    const isPriceOfOne = ({ method, params }: { method: string; params: readonly unknown[] }) =>
      method === "getRecentPrioritizationFees" && (params as [string[]])[0].length === 2;
    const release = hold(sandbox.rpc, isPriceOfOne);
    const outcomes: string[] = [];
    const collects = [1, 2, 3, 4, 5, 6].map(async (i) =>
      outcomes.push((await collector.collect(`artist00${i}`)).kind),
    );
    await expect.poll(() => sandbox.rpc.calls.filter(isPriceOfOne).length).toBe(6);
    server.freeze();
    release();
    await expect.poll(() => outcomes).toEqual(Array(3).fill("fee-payer-short"));
    removeFault();
    await Promise.all(collects);
    expect(outcomes.slice(3)).toEqual(Array(3).fill("collected"));
    expect(sandbox.landedCollects()).toHaveLength(3);
    server.thaw();
  });
});

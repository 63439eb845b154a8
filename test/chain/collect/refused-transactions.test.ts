import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { REFUSES_VERSION_1 } from "../../support/refuse-version-1.ts";
import { createSandboxCollector } from "../../support/collector-on-sandbox.ts";
import { rpcError, rpcResult } from "../../support/rpc-answers.ts";
import { isMethod, NEVER_MS, startTestSandbox, type TestSandbox } from "../../support/sandbox.ts";

const FEES = 1_000_000_000n;
const COLLECTED = { kind: "collected", collected: FEES };
const handles = Array.from({ length: 3 }, (_, i) => `artist00${i + 1}`);

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
  const { chain } = sandbox;
  for (const handle of handles)
    chain.setBalance(sandbox.account(handle).creatorVault, chain.rentExemptMinimum(0) + FEES);
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const { faults } of [sandbox.rpc, sandbox.secondRpc]) faults.clear();
  await sandbox.close();
});

/** A collector with these endpoints, the preferred one first. */
const collectorOf = (...rpcs: TestSandbox["rpc"][]) => createSandboxCollector(sandbox, { rpcs });
const linesOf = ({ logLines }: { logLines: readonly string[] }, text: string) =>
  logLines.filter((line) => line.includes(text));
const callsOf = ({ calls }: TestSandbox["rpc"], method: string) =>
  calls.filter(isMethod(method)).length;

const REFUSALS = {
  "cannot decode it": () => REFUSES_VERSION_1.then,
  "names its version": () => rpcError({ code: -32015 }),
  "simulates it and fails for its version": () =>
    rpcResult({
      context: { slot: sandbox.chain.slot("finalized") },
      value: { err: "UnsupportedVersion" },
    }),
};

describe("an endpoint that refuses a transaction", () => {
  it.each(Object.keys(REFUSALS) as (keyof typeof REFUSALS)[])(
    "that another takes, because it %s, still gets all calls first",
    async (how) => {
      // No endpoint has been silent for long.
      vi.spyOn(performance, "now").mockReturnValue(performance.now());
      const { rpc, secondRpc } = sandbox;
      rpc.faults.add({ ...REFUSES_VERSION_1, then: REFUSALS[how]() });
      // Sends each transaction once, also on a busy machine.
      const waits = { resendMs: NEVER_MS };
      const collector = createSandboxCollector(sandbox, { rpcs: [rpc, secondRpc], waits });
      for (const handle of handles)
        expect(await collector.collect(handle)).toMatchObject(COLLECTED);
      expect(sandbox.landedCollects().map(({ message }) => message.version)).toEqual([1, 1, 1]);
      expect(callsOf(rpc, "sendTransaction")).toBe(3);
      expect(callsOf(secondRpc, "getMultipleAccounts")).toBeLessThan(3);
      expect(linesOf(collector, "refuses a transaction")).toHaveLength(1);
      expect(linesOf(collector, "a chain endpoint fails")).toEqual([]);
    },
  );

  it("as all others do fails the collect, and gets the next one", async () => {
    const rpcs = [sandbox.rpc, sandbox.secondRpc];
    const removals = rpcs.map(({ faults }) => faults.add(REFUSES_VERSION_1));
    const collector = collectorOf(...rpcs);
    await expect(collector.collect("artist001")).rejects.toMatchObject({
      failure: "refused",
      method: "simulateTransaction",
    });
    expect(linesOf(collector, "a chain endpoint fails")).toEqual([]);
    expect(sandbox.landedCollects()).toEqual([]);
    for (const remove of removals) remove();
    const before = callsOf(sandbox.rpc, "simulateTransaction");
    expect(await collector.collect("artist001")).toMatchObject(COLLECTED);
    expect(callsOf(sandbox.rpc, "simulateTransaction")).toBe(before + 1);
  });

  it("is not waited for: it still gets transactions while the others fail", async () => {
    const { rpc, secondRpc } = sandbox;
    const remove = rpc.faults.add(REFUSES_VERSION_1);
    const collector = collectorOf(rpc, secondRpc);
    expect(await collector.collect("artist001")).toMatchObject(COLLECTED);
    remove();
    secondRpc.faults.add({ then: { status: 503, body: "" } });
    expect(await collector.collect("artist002")).toMatchObject(COLLECTED);
  });
});

it("two transactions in a row that expire change nothing in the next one", async () => {
  const { rpc, chain } = sandbox;
  const collector = collectorOf(rpc);
  for (const handle of handles.slice(0, 2)) {
    const drop = rpc.faults.add({ when: isMethod("sendTransaction"), then: rpcResult("dropped") });
    rpc.calls.length = 0;
    const collect = collector.collect(handle);
    await expect.poll(() => rpc.calls.some(isMethod("sendTransaction"))).toBe(true);
    chain.advanceSlots(200);
    expect(await collect).toMatchObject({ kind: "expired" });
    drop();
  }
  expect(await collector.collect("artist003")).toMatchObject(COLLECTED);
  expect(sandbox.landedCollects()[0]!.message.version).toBe(1);
});

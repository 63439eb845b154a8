import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createVersionChoice } from "../../../src/chain/collect/message/message-version.ts";
import { REFUSES_VERSION_1 } from "../../../src/sandbox/rpc/refuse-version-1.ts";
import { createLogger } from "../../../src/observability/log.ts";
import { createSandboxCollector } from "../../support/collector-on-sandbox.ts";
import { rpcError, rpcResult } from "../../support/rpc-answers.ts";
import { isMethod, startTestSandbox, type TestSandbox } from "../../support/sandbox.ts";

const FEES = 1_000_000_000n;
const COLLECTED = { kind: "collected", collected: FEES };
const handles = Array.from({ length: 30 }, (_, i) => `artist${String(i + 1).padStart(3, "0")}`);

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
  const { chain } = sandbox;
  for (const handle of handles)
    chain.setBalance(sandbox.account(handle).creatorVault, chain.rentExemptMinimum(0) + FEES);
});
afterEach(async () => {
  for (const { faults } of [sandbox.rpc, sandbox.secondRpc]) faults.clear();
  await sandbox.close();
});

/** A collector with these endpoints, the preferred one first. */
const collectorOf = (...rpcs: TestSandbox["rpc"][]) => createSandboxCollector(sandbox, { rpcs });
const versions = () => sandbox.landedCollects().map(({ message }) => message.version);
const linesOf = ({ logLines }: { logLines: readonly string[] }, text: string) =>
  logLines.filter((line) => line.includes(text));

describe("collects build transactions of version 1", () => {
  it("and legacy ones if every endpoint refuses them: the collects that find out succeed, and it is logged once", async () => {
    const rpcs = [sandbox.rpc, sandbox.secondRpc];
    for (const { faults } of rpcs) faults.add(REFUSES_VERSION_1);
    const collector = collectorOf(...rpcs);
    expect(await collector.collect("creator")).toMatchObject({ kind: "collected" });
    const all = await Promise.all(handles.map((handle) => collector.collect(handle, handle)));
    expect(all).toMatchObject(Array(30).fill(COLLECTED));
    expect(new Set(versions())).toEqual(new Set(["legacy"]));
    expect(linesOf(collector, "refuse transactions of version 1")).toHaveLength(1);
    expect(linesOf(collector, "a chain endpoint fails")).toEqual([]);
  });

  it("of which thirty that were planned together become legacy ones that fit", async () => {
    sandbox.rpc.faults.add(REFUSES_VERSION_1);
    const collector = collectorOf(sandbox.rpc);
    const all = await Promise.all(handles.map((handle) => collector.collect(handle, handle)));
    expect(all).toMatchObject(Array(30).fill(COLLECTED));
    expect(versions().length).toBeLessThanOrEqual(4);
    expect(new Set(versions())).toEqual(new Set(["legacy"]));
  });

  it("if one endpoint refuses them and another does not; the one that does is not backed off", async () => {
    sandbox.rpc.faults.add(REFUSES_VERSION_1);
    const collector = collectorOf(sandbox.rpc, sandbox.secondRpc);
    for (const handle of handles.slice(0, 3))
      expect(await collector.collect(handle)).toMatchObject(COLLECTED);
    expect(versions()).toEqual([1, 1, 1]);
    expect(linesOf(collector, "a chain endpoint fails")).toEqual([]);
    expect(sandbox.secondRpc.calls.filter(isMethod("getMultipleAccounts")).length).toBeLessThan(3);
  });

  it("and legacy ones if one endpoint refuses them and the other does not answer", async () => {
    sandbox.rpc.faults.add(REFUSES_VERSION_1);
    sandbox.secondRpc.faults.add({ then: { status: 503, body: "" } });
    const collector = collectorOf(sandbox.rpc, sandbox.secondRpc);
    expect(await collector.collect("artist001")).toMatchObject(COLLECTED);
    expect(versions()).toEqual(["legacy"]);
  });

  it.each(["names the version", "simulates and fails for the version"])(
    "and legacy ones if the only endpoint %s",
    async (how) => {
      const context = { slot: sandbox.chain.slot("confirmed") };
      const refusals = [
        rpcError({ code: -32015 }),
        rpcResult({ context, value: { err: "UnsupportedVersion" } }),
      ];
      sandbox.rpc.faults.add({
        ...REFUSES_VERSION_1,
        then: refusals[how.startsWith("names") ? 0 : 1]!,
      });
      expect(await collectorOf(sandbox.rpc).collect("artist001")).toMatchObject(COLLECTED);
      expect(versions()).toEqual(["legacy"]);
    },
  );

  it("and legacy ones after two in a row have expired", async () => {
    const { rpc, chain } = sandbox;
    const collector = collectorOf(rpc);
    for (const handle of handles.slice(0, 2)) {
      rpc.calls.length = 0;
      const drop = rpc.faults.add({
        when: isMethod("sendTransaction"),
        then: rpcResult("dropped"),
      });
      const collect = collector.collect(handle);
      await expect.poll(() => rpc.calls.some(isMethod("sendTransaction"))).toBe(true);
      chain.advanceSlots(200);
      expect(await collect).toMatchObject({ kind: "expired" });
      drop();
    }
    expect(await collector.collect("artist003")).toMatchObject(COLLECTED);
    expect(versions()).toEqual(["legacy"]);
    expect(linesOf(collector, "in a row have expired")).toHaveLength(1);
  });
});

it("version 1 is tried again after an hour; one that lands forgets those that expired", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const choice = createVersionChoice({ log: createLogger("silent") });
  choice.ended("expired");
  choice.ended("landed");
  choice.ended("expired");
  expect(choice.current()).toBe(1);
  choice.refused();
  vi.advanceTimersByTime(3_599_999);
  expect(choice.current()).toBe("legacy");
  vi.advanceTimersByTime(1);
  expect(choice.current()).toBe(1);
  vi.useRealTimers();
});

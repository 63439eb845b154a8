import { readPrice } from "../../../src/chain/units/priority-fee.ts";
import { listTransactions } from "../../../src/chain/history/list-transactions.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { rpcError, rpcResult } from "../../support/rpc-answers.ts";
import { hold, isMethod } from "../../support/sandbox.ts";
import { startPlainNodes, type PlainNode } from "../../support/doubles/plain-nodes.ts";

const FIRST = "0 getMultipleAccounts";
const SECOND = "1 getMultipleAccounts";
const SLOW_MS = 1_000;
const LIMITED = { status: 429, body: "" };

let started: Awaited<ReturnType<typeof startPlainNodes>>;
let client: ReturnType<typeof started.createClient>;
let first: PlainNode;
let second: PlainNode;
async function start({ fakeTimers = false } = {}): Promise<void> {
  started = await startPlainNodes(2, { fakeTimers });
  [first, second] = started.nodes as [PlainNode, PlainNode];
}
afterEach(() => started.close());

/** A client that knows the cluster and the state of all endpoints. */
async function createClient(options: Parameters<typeof started.createClient>[0] = {}) {
  client = started.createClient(options);
  await client.readClusters();
  await started.takeCalls();
}
/** Reads an account, and returns the calls, also those in the background. */
async function read(): Promise<string[]> {
  await client.getAccounts(["x"]);
  return started.takeCalls();
}
async function fail(): Promise<string[]> {
  await expect(client.getAccounts(["x"])).rejects.toThrow();
  return started.takeCalls();
}
const readAt = (minSlot: number) =>
  client.readAccounts({
    ...{ groups: [["x"]], bytes: 0, take: () => true },
    minSlotOf: () => minSlot,
  });
const readTransaction = () => client.readTransaction("x");
const simulate = () => client.simulateTransaction("", { addresses: ["x"], minSlot: 0 });

describe("a failing endpoint", () => {
  beforeEach(async () => {
    await start();
    await createClient();
  });

  it("gets no callers, and is asked again without them after 1, 2, 4 s, up to half a minute", async () => {
    expect(await read()).toEqual([FIRST]);
    first.faults.add({ then: "reset" });
    expect(await read()).toEqual([FIRST, SECOND]);
    const times: number[] = [];
    for (let seconds = 1; seconds <= 125; seconds++) {
      started.later(1_000);
      const calls = await read();
      expect(calls[0]).toBe(SECOND);
      if (calls.some((call) => call.startsWith("0"))) times.push(seconds);
    }
    expect(times).toEqual([1, 3, 7, 15, 31, 61, 91, 121]);
  });

  it("has its callers again as soon as it works, and waits longer each time that it fails again soon", async () => {
    for (const waitMs of [1_000, 2_000, 4_000, 8_000]) {
      first.faults.add({ then: "reset", times: 1 });
      expect(await read()).toEqual([FIRST, SECOND]);
      started.later(waitMs - 1);
      expect(await read()).not.toContain("0 state");
      started.later(1);
      expect(await read()).toContain("0 state");
      expect(await read()).toEqual([FIRST]);
    }
  });
});

describe("a call that only some endpoints serve moves no others", () => {
  beforeEach(async () => {
    await start();
    await createClient();
  });

  describe("a history", () => {
    const method = "getSignaturesForAddress";
    const list = () => listTransactions(client, "x", { before: undefined, limit: 9, minSlot: 0 });
    const takeLists = async () =>
      (await started.takeCalls()).filter((call) => call.endsWith(method)).join();

    it("of a node that has none", async () => {
      first.faults.add({ when: isMethod(method), then: rpcError({ code: -32011 }) });
      await list();
      expect(await takeLists()).toBe(`0 ${method},1 ${method}`);
      // The second one has nothing: the first one is asked too.
      await list();
      expect(await takeLists()).toBe(`1 ${method},0 ${method}`);
      expect(await read()).toEqual([FIRST]);
      // Histories have no other sign that it works.
      started.later(1_000);
      await list();
      expect(await takeLists()).toContain(`0 ${method}`);
    });

    it("that is short is read again while another endpoint fails, until that one has failed for 3 s", async () => {
      first.faults.add({ when: isMethod(method), then: "reset" });
      await list();
      expect((await takeLists()).split(",").length).toBeGreaterThan(10);
      started.later(3_001);
      await list();
      expect(await takeLists()).toBe(`0 ${method},1 ${method}`);
    });
  });

  const refuses = (code: number) => rpcError({ code });
  const failsVersion = rpcResult({
    context: { slot: 10_000 },
    value: { err: "UnsupportedVersion" },
  });
  it.each<[string, ReturnType<typeof rpcError>, string, () => Promise<unknown>]>([
    ["version that it cannot return", refuses(-32015), "getTransaction", () => readTransaction()],
    ["refused transaction", refuses(-32602), "simulateTransaction", () => simulate()],
    ["refused version", refuses(-32015), "simulateTransaction", () => simulate()],
    ["version that fails there", failsVersion, "simulateTransaction", () => simulate()],
    ["missing method", refuses(-32601), "getRecentPrioritizationFees", () => readPrice(client, [])],
  ])("a node with a %s", async (_, then, method, call) => {
    first.faults.add({ when: isMethod(method), then });
    for (let i = 0; i < 2; i++) {
      await call();
      expect(await started.takeCalls()).toEqual([`0 ${method}`, `1 ${method}`]);
      expect(await read()).toEqual([FIRST]);
    }
  });
});

describe("an endpoint that is slow", () => {
  beforeEach(async () => {
    await start({ fakeTimers: true });
    await createClient({ rpcTimeoutMs: 10 * SLOW_MS });
  });
  const isCalled = (...calls: string[]) =>
    eventually(() => {
      expect(started.calls).toEqual(calls);
    });

  it("is passed over, and gets no callers until it is fast", async () => {
    const release = hold(first);
    const answer = client.getAccounts(["x"]);
    await isCalled(FIRST);
    started.later(SLOW_MS - 1);
    await isCalled(FIRST);
    started.later(1);
    await answer;
    expect(await started.takeCalls()).toEqual([FIRST, SECOND]);
    expect(await read()).toEqual([SECOND]);

    started.later(1_000);
    await client.getAccounts(["x"]);
    await isCalled(SECOND, "0 state");
    started.later(SLOW_MS);
    expect(await started.takeCalls()).toEqual([SECOND, "0 state"]);
    expect(await read()).toEqual([SECOND]);

    release();
    started.later(2_000);
    expect(await read()).toEqual([SECOND, "0 state"]);
    expect(await read()).toEqual([FIRST]);
  });

  it("ends calls at the timeout", async () => {
    const releases = [hold(first), hold(second)];
    const answer = expect(client.getAccounts(["x"])).rejects.toMatchObject({
      failure: "timeout",
    });
    await isCalled(FIRST);
    started.later(SLOW_MS);
    await isCalled(FIRST, SECOND);
    started.later(9 * SLOW_MS);
    await answer;
    for (const release of releases) release();
  });
});

describe("a single endpoint", () => {
  beforeEach(async () => {
    await start();
    await createClient({ urls: [first.url] });
  });

  it("that fails half its calls answers all, and calls are not made in vain", async () => {
    let calls = 0;
    // Half of them, and up to five in a row.
    const fails = () => [0, 1, 2, 3, 4, 7, 9, 10].includes(calls++ % 16);
    first.faults.add({ when: fails, then: LIMITED });
    for (let i = 0; i < 32; i++) await read();
    expect(calls).toBe(64);
  });

  it("fails calls after some tries, and soon once it has been down for 3 s", async () => {
    first.faults.add({ then: "reset" });
    expect(await fail()).toEqual(Array(8).fill(FIRST));
    started.later(3_000);
    expect(await fail()).toHaveLength(8);
    started.later(1);
    expect(await fail()).toEqual([FIRST, FIRST]);
    first.faults.clear();
    expect(await read()).toEqual([FIRST]);
  });
});

describe("Retry-After", () => {
  const limit = (seconds: number | string, node = first) =>
    node.faults.add({
      then: { ...LIMITED, headers: { "retry-after": String(seconds) } },
      times: 1,
    });
  beforeEach(() => start());

  it("is waited for by calls that have the time", async () => {
    await createClient({ urls: [first.url] });
    limit(1);
    const answer = client.getAccounts(["x"]);
    await eventually(() => {
      expect(started.calls).toEqual([FIRST]);
    });
    await started.settle();
    // The client's clock stands still, but its waits pass.
    started.later(1_000);
    await answer;
    expect(await started.takeCalls()).toEqual([FIRST, FIRST]);
  });

  it("fails calls at once that do not have it, for half a minute at most", async () => {
    await createClient({ urls: [first.url], rpcTimeoutMs: 20_000 });
    limit(3_600);
    expect(await fail()).toEqual([FIRST]);
    started.later(9_999);
    expect(await fail()).toEqual([]);
    started.later(20_001);
    expect(await read()).toEqual([FIRST]);
  });

  it.each(["0", "soon"])("does not count: %s", async (text) => {
    await createClient({ urls: [first.url] });
    limit(text);
    expect(await read()).toEqual([FIRST, FIRST]);
  });

  it("does not count for sends and outcomes", async () => {
    await createClient({ urls: [first.url], rpcTimeoutMs: 20_000 });
    limit(30);
    await fail();
    limit(30);
    await client.sendTransaction("").catch(() => undefined);
    await client.sendTransaction("");
    limit(30);
    await client.findLanded(["x"]);
    expect(await started.takeCalls()).toEqual([
      ...["0 sendTransaction", "0 sendTransaction"],
      ...["0 getSignatureStatuses", "0 getSignatureStatuses"],
    ]);
  });
});

describe("an endpoint that has not reached the wanted slot", () => {
  beforeEach(async () => {
    await start();
    await createClient();
  });

  it("is followed by the next one at once, and does not fail", async () => {
    second.state.slot += 20;
    await readAt(10_010);
    expect(await started.takeCalls()).toEqual([FIRST, SECOND]);
    expect(await read()).toEqual([FIRST]);
    expect(client.problems()).toEqual([]);
  });

  it("is waited for as long as the call has time", async () => {
    let calls = 0;
    for (const { faults, state } of started.nodes)
      faults.add({
        when() {
          if (++calls === 6) state.slot += 20;
          return false;
        },
      });
    await readAt(10_010);
    expect(calls).toBeGreaterThanOrEqual(6);
  });

  it("is not believed if it answers nevertheless", async () => {
    const ignores = ({ params }: { params: readonly unknown[] }) => {
      delete (params[1] as { minContextSlot?: number }).minContextSlot;
      return false;
    };
    first.faults.add({ when: ignores });
    second.state.slot += 20;
    await readAt(10_010);
    expect(await started.takeCalls()).toEqual([FIRST, SECOND]);
  });
});

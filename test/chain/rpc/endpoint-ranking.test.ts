import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createEndpointRanking } from "../../../src/chain/rpc/endpoint-ranking.ts";
import { untilAborted } from "../../../src/chain/rpc/deadline.ts";
import { createFailover } from "../../../src/chain/rpc/failover.ts";
import {
  toEndpoints,
  type CallEndpoint,
  type Endpoint,
} from "../../../src/chain/rpc/rpc-endpoint.ts";
import { RpcError } from "../../../src/chain/rpc/rpc-error.ts";
import { CLOCK_BYTES, CLOCK_SYSVAR } from "../../../src/chain/slots/clock.ts";
import { createLogger } from "../../../src/observability/log.ts";

const HOSTS = ["first", "second", "third"] as const;
type Host = (typeof HOSTS)[number];
const MINUTE_MS = 60_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** The state of an endpoint that is right: five slots a second. */
const stateNow = (behindMs = 0) => ({
  slot: 1_000 + Math.floor((performance.now() - behindMs) / 200),
  clockMs: Date.now() - behindMs,
});

/** A ranking of endpoints that answer with the hashes in `answers`, or fail without one. */
function startRanking(answers: Partial<Record<Host, string>>) {
  const hashes = { ...answers };
  const endpoints = toEndpoints(HOSTS.map((host) => new URL(`http://${host}`)));
  const endpointOf = (host: Host) => endpoints[HOSTS.indexOf(host)]!;
  const called: string[] = [];
  const lines: string[] = [];
  const states: Partial<Record<Host, () => { slot: number; clockMs: number }>> = {};
  let delayMs = 0;
  const callEndpoint = (async ({ host }: Endpoint, method: string, _params, signal) => {
    called.push(`${host} ${method}`);
    if (delayMs > 0)
      await untilAborted(new Promise((resolve) => setTimeout(resolve, delayMs)), signal);
    const hash = hashes[host as Host];
    if (hash === undefined) throw new RpcError("error", method, host, { code: -32015 });
    if (method === "getGenesisHash") return hash;
    const { slot, clockMs } = (states[host as Host] ?? stateNow)();
    const data = Buffer.alloc(CLOCK_BYTES);
    data.writeBigInt64LE(BigInt(Math.floor(clockMs / 1_000)), CLOCK_BYTES - 8);
    return { context: { slot }, value: [{ data }] };
  }) as CallEndpoint;
  const log = createLogger("trace", { write: (line) => void lines.push(line) });
  const ranking = createEndpointRanking({ endpoints, callEndpoint, rpcTimeoutMs: 5_000, log });
  const call = (endpoint: Endpoint, signal: AbortSignal) =>
    ranking.callEndpoint(endpoint, "getMultipleAccounts", [[CLOCK_SYSVAR]], signal);
  const { signal } = new AbortController();
  return {
    hashes,
    states,
    called,
    ranking,
    lines: (level: number) => lines.filter((line) => line.includes(`"level":${level}`)),
    slowDown(ms: number) {
      delayMs = ms;
    },
    failover: createFailover({ endpoints, ranking, rpcTimeoutMs: 5_000 }),
    call,
    /** Resolves to "used", or to the reason why the endpoint was not. */
    use: (host: Host): Promise<string> =>
      call(endpointOf(host), signal).then(
        () => "used",
        (error: unknown) => (error as RpcError).failure,
      ),
    fail(host: Host) {
      ranking.failed(endpointOf(host), new RpcError("unreachable", "getSlot", host));
    },
    isOverruled: (host: Host) => ranking.isOverruled(endpointOf(host)),
    order: () => ranking.inOrder().map(({ host }) => host),
  };
}
const ALL = { first: "a", second: "a", third: "a" };

describe("an endpoint's cluster", () => {
  it("is read before its first use, after a failure, and not otherwise by calls", async () => {
    const { use, fail, called } = startRanking(ALL);
    const reads = () => called.filter((each) => each === "first getGenesisHash").length;
    expect([await use("first"), await use("first"), reads()]).toEqual(["used", "used", 1]);
    fail("first");
    expect([await use("first"), reads()]).toEqual(["used", 2]);
  });

  it("is read once a minute, without a caller that waits", async () => {
    const { use, called, ranking } = startRanking(ALL);
    await use("first");
    called.length = 0;
    vi.advanceTimersByTime(MINUTE_MS);
    await use("first");
    expect(called).toEqual(["first getMultipleAccounts"]);
    ranking.check();
    await vi.advanceTimersByTimeAsync(0);
    expect(called).toContain("first getGenesisHash");
  });

  it("is the one that most endpoints report, whichever answers first", async () => {
    for (const odd of HOSTS) {
      const { use, ranking, lines } = startRanking({ ...ALL, [odd]: "b" });
      expect(await use(odd)).toBe("used");
      await ranking.readClusters();
      for (const host of HOSTS) expect(await use(host)).toBe(host === odd ? "cluster" : "used");
      expect(ranking.genesisHash()).toBe("a");
      expect(lines(50)).toEqual([expect.stringContaining(`"host":"${odd}"`)]);
    }
  });

  it("does not change when a more preferred endpoint comes back that reports another", async () => {
    const { use, hashes } = startRanking({ second: "b", third: "b" });
    expect([await use("first"), await use("second"), await use("third")]).toEqual([
      "error",
      "used",
      "used",
    ]);
    hashes.first = "a";
    expect([await use("first"), await use("second"), await use("third")]).toEqual([
      "cluster",
      "used",
      "used",
    ]);
  });

  it("is not known of three while only two have answered, and these differ", async () => {
    const { use, hashes } = startRanking({ first: "a", second: "b" });
    const useAll = async () => [await use("first"), await use("second"), await use("third")];
    expect(await useAll()).toEqual(["used", "used", "error"]);
    hashes.third = "b";
    await use("third");
    expect(await useAll()).toEqual(["cluster", "used", "used"]);
  });

  it("does not change when an endpoint answers differently than before, while another one still reports it", async () => {
    const { use, fail, hashes } = startRanking(ALL);
    expect([await use("first"), await use("second")]).toEqual(["used", "used"]);
    hashes.first = "b";
    fail("first");
    expect([await use("first"), await use("second")]).toEqual(["cluster", "used"]);
  });

  it("changes once two endpoints report another one, and fewer report it", async () => {
    const { use, fail, hashes } = startRanking(ALL);
    for (const host of HOSTS) expect(await use(host)).toBe("used");
    Object.assign(hashes, { first: "b", second: "b" });
    fail("first");
    expect(await use("first")).toBe("cluster");
    fail("second");
    await use("second");
    expect([await use("first"), await use("third")]).toEqual(["used", "cluster"]);
  });

  it("is logged as an error once per change", async () => {
    const { use, fail, lines, ranking } = startRanking({ ...ALL, second: "b" });
    await ranking.readClusters();
    for (let i = 0; i < 3; i++) {
      expect(await use("second")).toBe("cluster");
      fail("second");
    }
    expect(lines(50)).toEqual([expect.stringContaining('"host":"second"')]);
  });
});

it("endpoints that fail and then answer in 3 s serve every call", async () => {
  const { ranking, failover, call, fail, slowDown } = startRanking(ALL);
  await ranking.readClusters();
  for (const host of HOSTS) fail(host);
  slowDown(3_000);
  const results = Promise.allSettled(
    Array.from({ length: 6 }, async (_, i) => {
      await new Promise((resolve) => setTimeout(resolve, i * 4_000));
      return failover.call(call);
    }),
  );
  await vi.advanceTimersByTimeAsync(MINUTE_MS);
  expect((await results).map(({ status }) => status)).toEqual(Array(6).fill("fulfilled"));
});

describe("the preferred endpoint loses the reads", () => {
  /** Calls every 2 s for this long; returns the host that answered each call. */
  async function callFor(started: ReturnType<typeof startRanking>, ms: number): Promise<string[]> {
    const hosts: string[] = [];
    for (const end = performance.now() + ms; performance.now() < end;) {
      await vi.advanceTimersByTimeAsync(2_000);
      await started.failover.call(async (endpoint, signal) => {
        await started.call(endpoint, signal);
        hosts.push(endpoint.host);
      });
      await vi.advanceTimersByTimeAsync(0);
    }
    return hosts;
  }

  it("while it stands still, which is logged once, and has them again when it advances", async () => {
    const started = startRanking(ALL);
    await started.ranking.readClusters();
    expect(new Set(await callFor(started, 20_000))).toEqual(new Set(["first"]));
    const then = stateNow();
    started.states.first = () => ({ ...then, clockMs: Date.now() });
    expect((await callFor(started, 20_000)).slice(5)).toEqual(Array(5).fill("second"));
    expect(started.lines(40)).toEqual([expect.stringContaining("stands still")]);
    delete started.states.first;
    expect((await callFor(started, 20_000)).slice(2)).toEqual(Array(8).fill("first"));
  });

  it("while its clock is more than 15 s old, but not if all clocks are", async () => {
    const started = startRanking(ALL);
    started.states.first = () => stateNow(16_000);
    await started.ranking.readClusters();
    expect(new Set(await callFor(started, 10_000))).toEqual(new Set(["second"]));
    expect(started.lines(40)).toEqual([expect.stringContaining("more than 15 s old")]);
    for (const host of HOSTS) started.states[host] = () => stateNow(17_000);
    expect((await callFor(started, 20_000)).at(-1)).toBe("first");
  });

  it("not to one that goes on while all others stand at the same slot", async () => {
    const started = startRanking(ALL);
    await started.ranking.readClusters();
    const then = stateNow();
    started.states.first = started.states.second = () => then;
    expect(await callFor(started, MINUTE_MS)).not.toContain("third");
  });

  it("not to one that claims to be ahead, by a constant, by ever more or by its clock", async () => {
    for (const lie of [
      () => ({ ...stateNow(), slot: stateNow().slot + 10_000 }),
      () => ({ ...stateNow(), slot: stateNow().slot * 2 }),
      () => ({ slot: stateNow().slot + 10_000, clockMs: Date.now() + 3_600_000 }),
    ]) {
      const started = startRanking(ALL);
      started.states.second = started.states.third = lie;
      await started.ranking.readClusters();
      expect(new Set(await callFor(started, 60_000))).toEqual(new Set(["first"]));
    }
  });
});

describe("an endpoint with a fault is overruled", () => {
  /** Reads all states for 20 s. */
  async function checkFor20Seconds({ ranking }: ReturnType<typeof startRanking>): Promise<void> {
    for (let seconds = 0; seconds < 20; seconds += 2) {
      await vi.advanceTimersByTimeAsync(2_000);
      ranking.check();
    }
    await vi.advanceTimersByTimeAsync(0);
  }

  it.each(["still", "late"])(
    "by two better ones, not by one while another has the fault too: %s",
    async (fault) => {
      const started = startRanking(ALL);
      await started.ranking.readClusters();
      const then = stateNow();
      const stateOf = (slots: number) =>
        fault === "still" ? { ...then, slot: then.slot + slots } : stateNow(MINUTE_MS);
      started.states.first = () => stateOf(0);
      started.states.second = () => stateOf(1);
      await checkFor20Seconds(started);
      expect(HOSTS.map(started.isOverruled)).toEqual([false, false, false]);
      delete started.states.second;
      await checkFor20Seconds(started);
      expect(HOSTS.map(started.isOverruled)).toEqual([true, false, false]);
    },
  );

  it("by one better one while no other answers", async () => {
    const started = startRanking(ALL);
    await started.ranking.readClusters();
    started.states.first = () => stateNow(MINUTE_MS);
    delete started.hashes.second;
    await checkFor20Seconds(started);
    expect(started.isOverruled("first")).toBe(true);
  });
});

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createEndpointRanking } from "../../../src/chain/rpc/endpoint-ranking.ts";
import { createFailover } from "../../../src/chain/rpc/failover.ts";
import {
  toEndpoints,
  type CallEndpoint,
  type Endpoint,
} from "../../../src/chain/rpc/rpc-endpoint.ts";
import { RpcError } from "../../../src/chain/rpc/rpc-error.ts";
import { createLogger } from "../../../src/observability/log.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const urls = ["http://first", "http://second", "http://third"].map((url) => new URL(url));
/** The endpoints that were asked for their state without a call. */
const checked: string[] = [];
beforeEach(() => {
  checked.length = 0;
});
function newFailover() {
  const endpoints = toEndpoints(urls);
  const callEndpoint = (({ host }: Endpoint, method: string) => {
    if (method === "getGenesisHash") return Promise.resolve("genesis");
    checked.push(host);
    return Promise.resolve({ context: { slot: 7 }, value: [null] });
  }) as CallEndpoint;
  const ranking = createEndpointRanking({
    endpoints,
    callEndpoint,
    rpcTimeoutMs: 5_000,
    log: createLogger("silent"),
  });
  return createFailover({ endpoints, ranking, rpcTimeoutMs: 5_000 });
}
const down = (host: string) => new RpcError("unreachable", "getSlot", host);

/**
 * Makes one call; returns the endpoints that were called, those whose calls were aborted, and the
 * answer.
 */
async function callOnce(
  failover: ReturnType<typeof newFailover>,
  behave: (host: string, signal: AbortSignal) => Promise<string>,
  forMs = 400,
  isComplete?: (result: string) => boolean,
) {
  const called: string[] = [];
  const aborted: string[] = [];
  const answer = failover
    .call((endpoint: Endpoint, signal) => {
      called.push(endpoint.host);
      signal.addEventListener("abort", () => aborted.push(endpoint.host));
      return behave(endpoint.host, signal);
    }, isComplete)
    .catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(forMs);
  return { called, aborted, answer: await answer };
}

const works = (host: string) => Promise.resolve(`from ${host}`);
const fails =
  (...hosts: string[]) =>
  (host: string) =>
    hosts.includes(host) ? Promise.reject(down(host)) : works(host);
const hangs =
  (...hosts: string[]) =>
  (host: string) =>
    hosts.includes(host) ? new Promise<string>(() => undefined) : works(host);

describe("failover between endpoints", () => {
  it("uses the preferred endpoint while it works", async () => {
    const failover = newFailover();
    expect(await callOnce(failover, works)).toMatchObject({
      called: ["first"],
      answer: "from first",
    });
  });

  it("tries the next endpoint when one fails, and prefers the first again after its backoff", async () => {
    const failover = newFailover();
    expect(await callOnce(failover, fails("first"))).toMatchObject({
      called: ["first", "second"],
      answer: "from second",
    });
    expect(await callOnce(failover, works, 0)).toMatchObject({ called: ["second"] });
    await vi.advanceTimersByTimeAsync(500);
    expect(await callOnce(failover, works)).toMatchObject({
      called: ["first"],
      answer: "from first",
    });
  });

  it("backs off longer with each failure in a row, up to half a minute", async () => {
    const failover = newFailover();
    const times: number[] = [];
    const start = performance.now();
    while (performance.now() - start < 120_000) {
      const { called } = await callOnce(failover, fails("first"), 100);
      if (called.includes("first")) times.push(performance.now() - start);
    }
    const backoffs = times.slice(1).map((at, i) => at - times[i]!);
    expect(backoffs[0]).toBeLessThan(1_000);
    expect(Math.max(...backoffs)).toBeGreaterThan(25_000);
    expect(Math.max(...backoffs)).toBeLessThan(31_000);
  });

  it("also calls the next endpoint when one is slow, uses the first answer and aborts the other calls", async () => {
    const failover = newFailover();
    const slow = await callOnce(failover, hangs("first"), 1_000);
    expect(slow).toEqual({
      called: ["first", "second"],
      aborted: ["first", "second"],
      answer: "from second",
    });
    expect(await callOnce(failover, works, 0)).toMatchObject({ called: ["second"] });
  });

  it("tries all endpoints twice before it fails", async () => {
    const failover = newFailover();
    const { called, answer } = await callOnce(failover, fails("first", "second", "third"));
    expect(called).toEqual(["first", "second", "third", "first", "second", "third"]);
    expect(answer).toMatchObject({ failure: "unreachable" });
  });

  it("retries nodes that are behind until they catch up", async () => {
    const behind = new RpcError("error", "getSlot", "first", { code: -32016 });
    let called = 0;
    const answer = await newFailover().call(({ host }) =>
      ++called < 12 ? Promise.reject(behind) : works(host),
    );
    expect([called, answer]).toEqual([12, expect.stringContaining("from")]);
  });

  it.each([-32700, -32002, -32015, -32601, -32602])(
    "takes no error of one endpoint as final: %i",
    async (code) => {
      const error = new RpcError("error", "getSlot", "first", { code });
      const { called, answer } = await callOnce(newFailover(), (host) =>
        host === "first" ? Promise.reject(error) : works(host),
      );
      expect([called, answer]).toEqual([["first", "second"], "from second"]);
    },
  );

  it("counts calls that fail at the same moment as one failure", async () => {
    const failover = newFailover();
    await Promise.all(Array.from({ length: 20 }, () => callOnce(failover, fails("first"), 0)));
    expect(await callOnce(failover, works, 0)).toMatchObject({ called: ["second"] });
    await vi.advanceTimersByTimeAsync(500);
    expect(await callOnce(failover, works)).toMatchObject({ called: ["first"] });
  });
});

describe("an incomplete result", () => {
  /** Complete only from the third endpoint. */
  const isComplete = (result: string) => result === "from third";

  it("is not a failure: the call goes on to the next endpoints", async () => {
    const failover = newFailover();
    const { called, answer } = await callOnce(failover, works, 0, isComplete);
    expect([called, answer]).toEqual([["first", "second", "third"], "from third"]);
    expect(await callOnce(failover, works, 0)).toMatchObject({ called: ["first"] });
  });

  it("is the result when no endpoint has a complete one, each of them asked once", async () => {
    const { called, answer } = await callOnce(newFailover(), works, 400, () => false);
    expect([called, answer]).toEqual([["first", "second", "third"], "from third"]);
  });

  it("is the result when the other endpoints fail", async () => {
    const failover = newFailover();
    expect((await callOnce(failover, fails("second", "third"), 0, isComplete)).answer).toBe(
      "from first",
    );
    const { called } = await callOnce(failover, works, 0, isComplete);
    // The others back off.
    expect(called).toEqual(["first"]);
  });

  it("does not wait for an endpoint that is slow", async () => {
    const failover = newFailover();
    const { called, aborted, answer } = await callOnce(
      failover,
      hangs("first", "third"),
      2_100,
      isComplete,
    );
    expect([called, answer]).toEqual([["first", "second", "third"], "from second"]);
    expect(aborted).toContain("first");
    expect(await callOnce(failover, works, 0, isComplete)).toMatchObject({ called: ["second"] });
  });
});

describe("endpoints' slots", () => {
  it("are read of the endpoints that calls do not ask, after a call, once they have been silent for 2 s", async () => {
    const failover = newFailover();
    await vi.advanceTimersByTimeAsync(1_000);
    await callOnce(failover, works);
    expect(checked).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_000);
    await callOnce(failover, works);
    // Here calls themselves show no state.
    expect(checked).toEqual(["first", "second", "third"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(checked).toHaveLength(3);
  });

  it("do not make an endpoint back off, and the first retry for them does not wait", async () => {
    const failover = newFailover();
    let calls = 0;
    const unsupported = (host: string) =>
      ++calls <= 3 ? Promise.reject(new RpcError("slot", "getSlot", host)) : works(host);
    expect(await callOnce(failover, unsupported, 0)).toMatchObject({ answer: "from first" });
    expect((await callOnce(failover, works)).called).toEqual(["first"]);
  });

  it("that are too old are waited for until the timeout, also when other endpoints fail", async () => {
    const failover = newFailover();
    const behave = (host: string) =>
      Promise.reject(host === "first" ? new RpcError("slot", "getSlot", host) : down(host));
    const answer = callOnce(failover, behave, 0);
    let isOver = false;
    void answer.then(() => (isOver = true));
    await vi.advanceTimersByTimeAsync(4_999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await answer).answer).toMatchObject({ failure: "slot" });
  });
});

describe("an incomplete result of a call with a transaction", () => {
  const call = (
    failover: ReturnType<typeof newFailover>,
    behave: (host: string) => Promise<string>,
  ) =>
    failover.callWithTransaction(
      "simulateTransaction",
      ({ host }) => behave(host),
      (result) => result === "complete",
    );

  it("waits for the answer of a slow endpoint", async () => {
    const answer = call(newFailover(), (host) =>
      host === "first"
        ? Promise.resolve("incomplete")
        : new Promise<string>((resolve) => setTimeout(resolve, 4_000, "complete")),
    );
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await answer).toBe("complete");
  });

  it("waits for the answer of a slow endpoint after another one was behind", async () => {
    const failover = newFailover();
    const answer = call(failover, (host) => {
      if (host === "first") return Promise.resolve("incomplete");
      if (host === "second") return Promise.reject(new RpcError("slot", "getSlot", host));
      return new Promise<string>((resolve) => setTimeout(resolve, 4_000, "complete"));
    });
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await answer).toBe("complete");
  });

  /** Lets the time pass until an answer comes. Waits between tries are real: they pass slower. */
  async function settle(answer: Promise<string>): Promise<string> {
    const over = answer.then(() => true);
    while (!(await Promise.race([over, sleep(50, false)]))) await vi.advanceTimersByTimeAsync(100);
    return answer;
  }

  it("is compared with an endpoint that has failed twice, some seconds apart", async () => {
    const failover = newFailover();
    const failing = (host: string) =>
      host === "first" ? Promise.reject(down(host)) : Promise.resolve("complete");
    expect(await call(failover, failing)).toBe("complete");
    await vi.advanceTimersByTimeAsync(5_000);
    let calls = 0;
    const answer = call(failover, (host) => {
      if (host !== "first") return Promise.resolve("incomplete");
      return ++calls === 1 ? Promise.reject(down(host)) : Promise.resolve("complete");
    });
    expect(await settle(answer)).toBe("complete");
  });

  it("counts alone at once while the others' method is down, although calls are rare", async () => {
    const failover = newFailover();
    const behave = (host: string) =>
      host === "first" ? Promise.resolve("incomplete") : Promise.reject(down(host));
    expect(await settle(call(failover, behave))).toBe("incomplete");
    await vi.advanceTimersByTimeAsync(20_000);
    await callOnce(failover, works);
    const answer = call(failover, behave);
    await vi.advanceTimersByTimeAsync(0);
    expect(await answer).toBe("incomplete");
  });

  it("counts alone after the others were silent until the timeout", async () => {
    const answer = newFailover().callWithTransaction(
      "simulateTransaction",
      ({ host }, signal) =>
        host === "first"
          ? Promise.resolve("incomplete")
          : new Promise<string>((_, reject) => {
              signal.addEventListener("abort", () => {
                reject(down(host));
              });
            }),
      (result) => result === "complete",
    );
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await answer).toBe("incomplete");
  });

  it("goes on to the third endpoint when the second has failed for some seconds", async () => {
    const failover = newFailover();
    const behave = (third: string) => (host: string) =>
      host === "second"
        ? Promise.reject(down(host))
        : Promise.resolve(host === "third" ? third : "incomplete");
    expect(await settle(call(failover, behave("incomplete")))).toBe("incomplete");
    expect(await settle(call(failover, behave("complete")))).toBe("complete");
  });

  it("waits only briefly for endpoints that are slow and down", async () => {
    const failover = newFailover();
    const behave = (host: string) =>
      host === "first" ? Promise.resolve("incomplete") : Promise.reject(down(host));
    expect(await settle(call(failover, behave))).toBe("incomplete");
    const answer = call(failover, (host) =>
      host === "first" ? Promise.resolve("incomplete") : new Promise(() => undefined),
    );
    // A fifth of the timeout for each.
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await answer).toBe("incomplete");
    const nextAnswer = call(failover, behave);
    await vi.advanceTimersByTimeAsync(0);
    expect(await nextAnswer).toBe("incomplete");
  });

  it("is compared with an endpoint that has just failed", async () => {
    const failover = newFailover();
    await callOnce(failover, (host) =>
      host === "third" ? Promise.resolve("found") : Promise.reject(down(host)),
    );
    const answer = call(failover, (host) =>
      Promise.resolve(host === "third" ? "incomplete" : "complete"),
    );
    expect(await answer).toBe("complete");
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createFailover, type Endpoint } from "../../../src/chain/rpc/failover.ts";
import { RpcError } from "../../../src/chain/rpc/rpc-error.ts";
import { createLogger } from "../../../src/observability/log.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const urls = ["http://first", "http://second", "http://third"].map((url) => new URL(url));
const newFailover = () => createFailover({ urls, timeoutMs: 5_000, log: createLogger("silent") });
const down = (host: string) => new RpcError("unreachable", "getSlot", host);

/** Makes one call; returns the endpoints that were asked, those whose attempts were aborted, and the answer. */
async function ask(
  failover: ReturnType<typeof newFailover>,
  behave: (host: string, signal: AbortSignal) => Promise<string>,
  forMs = 400,
) {
  const asked: string[] = [];
  const aborted: string[] = [];
  const answer = failover
    .call((endpoint: Endpoint, signal) => {
      asked.push(endpoint.host);
      signal.addEventListener("abort", () => aborted.push(endpoint.host));
      return behave(endpoint.host, signal);
    })
    .catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(forMs);
  return { asked, aborted, answer: await answer };
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
    expect(await ask(failover, works)).toMatchObject({ asked: ["first"], answer: "from first" });
  });

  it("tries the next endpoint when one fails, and prefers the first again after its backoff", async () => {
    const failover = newFailover();
    expect(await ask(failover, fails("first"))).toMatchObject({
      asked: ["first", "second"],
      answer: "from second",
    });
    expect(await ask(failover, works, 0)).toMatchObject({ asked: ["second"] });
    await vi.advanceTimersByTimeAsync(500);
    expect(await ask(failover, works)).toMatchObject({ asked: ["first"], answer: "from first" });
  });

  it("backs off longer with each failure in a row, up to half a minute", async () => {
    const failover = newFailover();
    const times: number[] = [];
    const start = performance.now();
    while (performance.now() - start < 120_000) {
      const { asked } = await ask(failover, fails("first"), 100);
      if (asked.includes("first")) times.push(performance.now() - start);
    }
    const backoffs = times.slice(1).map((at, i) => at - times[i]!);
    expect(backoffs[0]).toBeLessThan(1_000);
    expect(Math.max(...backoffs)).toBeGreaterThan(25_000);
    expect(Math.max(...backoffs)).toBeLessThan(31_000);
  });

  it("also asks the next endpoint when one is slow, takes the first answer and aborts the others", async () => {
    const failover = newFailover();
    const slow = await ask(failover, hangs("first"), 1_000);
    expect(slow).toEqual({ asked: ["first", "second"], aborted: ["first", "second"], answer: "from second" });
    expect(await ask(failover, works, 0)).toMatchObject({ asked: ["second"] });
  });

  it("tries all endpoints once more when all have failed, and then fails", async () => {
    const failover = newFailover();
    const { asked, answer } = await ask(failover, fails("first", "second", "third"));
    expect(asked).toEqual(["first", "second", "third", "first", "second", "third"]);
    expect(answer).toMatchObject({ failure: "unreachable" });
  });

  it("tries nodes that are only behind again and again until they catch up", async () => {
    const behind = new RpcError("error", "getSlot", "first", { code: -32016 });
    let asked = 0;
    const answer = await newFailover().call(({ host }) =>
      ++asked < 12 ? Promise.reject(behind) : works(host),
    );
    expect([asked, answer]).toEqual([12, expect.stringContaining("from")]);
  });

  it("waits for a slow endpoint when another one answers with an error meanwhile", async () => {
    const final = new RpcError("error", "getSlot", "second", { code: -32015 });
    const { answer } = await ask(
      newFailover(),
      (host) =>
        host === "first"
          ? new Promise((resolve) =>
              setTimeout(() => {
                resolve("from first");
              }, 2_000),
            )
          : Promise.reject(final),
      3_000,
    );
    expect(answer).toBe("from first");
  });

  it("asks no second endpoint about an error that every node would give", async () => {
    const error = new RpcError("error", "getSlot", "first", { code: -32015 });
    const { asked, answer } = await ask(newFailover(), () => Promise.reject(error));
    expect([asked, answer]).toEqual([["first"], error]);
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createEndpoints, type Endpoint } from "../../../src/chain/rpc/failover.ts";
import { RpcError } from "../../../src/chain/rpc/rpc-error.ts";
import { createLogger } from "../../../src/observability/log.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const urls = ["http://first", "http://second", "http://third"].map((url) => new URL(url));
const newEndpoints = () => createEndpoints({ urls, timeoutMs: 5_000, log: createLogger("silent") });
const down = (host: string) => new RpcError("unreachable", "getSlot", host);

/** Makes one call, and tells who was asked, who answered, and whose attempts were aborted. */
async function ask(
  endpoints: ReturnType<typeof newEndpoints>,
  behave: (host: string, signal: AbortSignal) => Promise<string>,
  forMs = 400,
) {
  const asked: string[] = [];
  const aborted: string[] = [];
  const answer = endpoints
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

describe("several endpoints", () => {
  it("leave a call to the preferred one while it works", async () => {
    const endpoints = newEndpoints();
    expect(await ask(endpoints, works)).toMatchObject({ asked: ["first"], answer: "from first" });
  });

  it("take over from one that fails, which is asked again after a rest, and preferred when it works", async () => {
    const endpoints = newEndpoints();
    expect(await ask(endpoints, fails("first"))).toMatchObject({
      asked: ["first", "second"],
      answer: "from second",
    });
    expect(await ask(endpoints, works, 0)).toMatchObject({ asked: ["second"] });
    await vi.advanceTimersByTimeAsync(500);
    expect(await ask(endpoints, works)).toMatchObject({ asked: ["first"], answer: "from first" });
  });

  it("leave one that keeps failing alone for longer and longer, up to half a minute", async () => {
    const endpoints = newEndpoints();
    const times: number[] = [];
    const start = performance.now();
    while (performance.now() - start < 120_000) {
      const { asked } = await ask(endpoints, fails("first"), 100);
      if (asked.includes("first")) times.push(performance.now() - start);
    }
    const rests = times.slice(1).map((at, i) => at - times[i]!);
    expect(rests[0]).toBeLessThan(1_000);
    expect(Math.max(...rests)).toBeGreaterThan(25_000);
    expect(Math.max(...rests)).toBeLessThan(31_000);
  });

  it("are asked as well when one is slow; the first answer counts, and the others are aborted", async () => {
    const endpoints = newEndpoints();
    const slow = await ask(endpoints, hangs("first"), 1_000);
    expect(slow).toEqual({ asked: ["first", "second"], aborted: ["first", "second"], answer: "from second" });
    expect(await ask(endpoints, works, 0)).toMatchObject({ asked: ["second"] });
  });

  it("are asked once more when all have failed, and then it fails", async () => {
    const endpoints = newEndpoints();
    const { asked, answer } = await ask(endpoints, fails("first", "second", "third"));
    expect(asked).toEqual(["first", "second", "third", "first", "second", "third"]);
    expect(answer).toMatchObject({ failure: "unreachable" });
  });

  it("that are only behind are asked again and again, until they have caught up", async () => {
    vi.useRealTimers();
    const behind = new RpcError("error", "getSlot", "first", { code: -32016 });
    let asked = 0;
    const answer = await newEndpoints().call(({ host }) =>
      ++asked < 12 ? Promise.reject(behind) : works(host),
    );
    expect([asked, answer]).toEqual([12, expect.stringContaining("from")]);
  });

  it("do not lose a slow answer to an error that another gives meanwhile", async () => {
    const final = new RpcError("error", "getSlot", "second", { code: -32602 });
    const { answer } = await ask(
      newEndpoints(),
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

  it("give no second opinion on an error that every node would give", async () => {
    const error = new RpcError("error", "getSlot", "first", { code: -32602 });
    const { asked, answer } = await ask(newEndpoints(), () => Promise.reject(error));
    expect([asked, answer]).toEqual([["first"], error]);
  });
});

import { describe, expect, it } from "vitest";
import { createClusterCheck } from "../../../src/chain/rpc/cluster-check.ts";
import { toEndpoints } from "../../../src/chain/rpc/rpc-endpoint.ts";
import { isRetryable, RpcError } from "../../../src/chain/rpc/rpc-error.ts";
import { createLogger } from "../../../src/observability/log.ts";

const HOSTS = ["first", "second", "third"] as const;
type Host = (typeof HOSTS)[number];

/** A check of three endpoints that answer with the hashes in `answers`, or fail without one. */
function startCheck(answers: Partial<Record<Host, string | Promise<string>>>) {
  const endpoints = toEndpoints(HOSTS.map((host) => new URL(`http://${host}`)));
  const reads: string[] = [];
  const lines: string[] = [];
  const check = createClusterCheck({
    endpoints,
    async readGenesisHash({ host }) {
      reads.push(host);
      const answer = answers[host as Host];
      if (answer === undefined) throw new RpcError("error", "getGenesisHash", host, { code: -32015 });
      return answer;
    },
    timeoutMs: 60_000,
    log: createLogger("trace", { write: (line) => void lines.push(line) }),
  });
  const endpointOf = (host: Host) => endpoints[HOSTS.indexOf(host)]!;
  return {
    answers,
    reads,
    lines,
    /** Resolves to "used", or to the reason why the endpoint was not. */
    use: (host: Host, signal = new AbortController().signal): Promise<unknown> =>
      check
        .attempt(() => Promise.resolve("used"), endpointOf(host), signal)
        .catch((error: unknown) => (error instanceof RpcError ? error.failure : error)),
    attempt: check.attempt,
    endpointOf,
    fail(host: Host) {
      check.forget(endpointOf(host));
    },
  };
}

describe("an endpoint's cluster", () => {
  it("is read before its first use and after a failure, and not otherwise", async () => {
    const { use, fail, reads } = startCheck({ first: "a" });
    expect([await use("first"), await use("first")]).toEqual(["used", "used"]);
    expect(reads).toEqual(["first"]);
    fail("first");
    expect(await use("first")).toBe("used");
    expect(reads).toEqual(["first", "first"]);
  });

  it("is that of the most preferred endpoint that has answered", async () => {
    const { use, answers } = startCheck({ second: "b", third: "b" });
    expect([await use("first"), await use("second"), await use("third")]).toEqual([
      "unreadable",
      "used",
      "used",
    ]);
    answers.first = "a";
    expect(await use("first")).toBe("used");
    expect([await use("second"), await use("third")]).toEqual(["cluster", "cluster"]);
  });

  it("does not change when an endpoint answers differently than before, while another one still reports it", async () => {
    const { use, fail, answers } = startCheck({ first: "a", second: "a" });
    expect([await use("first"), await use("second")]).toEqual(["used", "used"]);
    answers.first = "b";
    fail("first");
    expect([await use("first"), await use("second")]).toEqual(["cluster", "used"]);
  });

  it("changes when no endpoint reports it any more", async () => {
    const { use, fail, answers } = startCheck({ first: "odd", second: "a" });
    expect([await use("first"), await use("second")]).toEqual(["used", "cluster"]);
    answers.first = "a";
    fail("first");
    expect([await use("first"), await use("second")]).toEqual(["used", "used"]);
  });

  it("is logged as an error once per change", async () => {
    const { use, fail, answers, lines } = startCheck({ first: "a", second: "b" });
    const errors = () => lines.filter((line) => line.includes('"level":50'));
    await use("first");
    for (let i = 0; i < 3; i++) {
      expect(await use("second")).toBe("cluster");
      fail("second");
    }
    expect(errors()).toEqual([expect.stringContaining('"host":"second"')]);
    answers.second = "a";
    expect(await use("second")).toBe("used");
    answers.second = "b";
    fail("second");
    expect(await use("second")).toBe("cluster");
    expect(errors()).toHaveLength(2);
  });

  it("is read once for all attempts of the same moment, and not again because one of them is aborted", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const { use, reads } = startCheck({ first: promise });
    const leaving = new AbortController();
    const left = use("first", leaving.signal);
    const others = Array.from({ length: 50 }, () => use("first"));
    leaving.abort();
    expect(await left).toBe("unreachable");
    resolve("a");
    expect(new Set(await Promise.all(others))).toEqual(new Set(["used"]));
    expect(reads).toEqual(["first"]);
  });

  it("does not fail the call when it cannot be read, whatever the error", async () => {
    const { attempt, endpointOf } = startCheck({});
    const { signal } = new AbortController();
    const error: unknown = await attempt(() => Promise.resolve(1), endpointOf("first"), signal).catch(
      (reason: unknown) => reason,
    );
    expect(isRetryable(error)).toBe(true);
  });

  it("is checked again after the answer: a more preferred endpoint may have shown another one meanwhile", async () => {
    const { attempt, use, endpointOf } = startCheck({ first: "a", second: "b" });
    const late = attempt(() => use("first"), endpointOf("second"), new AbortController().signal);
    await expect(late).rejects.toMatchObject({ failure: "cluster" });
  });
});

import { describe, expect, onTestFinished } from "vitest";
import { isLook } from "../support/sandbox.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { startWorld } from "../support/world.ts";

const it = withWorld({ RATE_LIMIT_MAX: "2" });

interface Line {
  readonly level: number;
  readonly requestId?: string;
  readonly msg: string;
}

/** The log lines of one request, its "answered" line first. */
function logLinesOf(id: string | null): Line[] {
  const lines = world.logLines
    .map((line) => JSON.parse(line) as Line)
    .filter(({ requestId }) => requestId === id);
  return lines.sort((a, b) => Number(b.msg === "answered") - Number(a.msg === "answered"));
}

describe("the log", () => {
  it.each([
    [
      "a lookup",
      () => world.lookup("creator"),
      { operation: "lookup", code: "OK", status: 200, socialReads: 1, chainReads: 1 },
    ],
    [
      "a lookup of a cached handle",
      () => world.lookup("CREATOR"),
      { operation: "lookup", code: "OK", cached: 1, socialReads: 0 },
    ],
    [
      "an unknown handle",
      () => world.lookup("nobodyatall"),
      { code: "SOCIAL_NOT_FOUND", status: 404, chainReads: 0 },
    ],
    [
      "a collect",
      () => world.collect(world.account("creator").id),
      { operation: "collect", code: "OK", status: 200 },
    ],
    [
      "an empty vault",
      () => world.collect(world.account("creator").id),
      { operation: "collect", code: "NOTHING_TO_COLLECT", status: 400 },
    ],
    [
      "a GraphQL operation",
      () =>
        world.graphql(
          '{ a: wallet(handle: "creator") { address } b: wallet(handle: "!") { address } }',
        ),
      { operation: "graphql", code: "INVALID_HANDLE", status: 200, cached: 1 },
    ],
    [
      "a health check, at debug level",
      () => world.request("/livez"),
      { level: 20, operation: "other", code: "OK" },
    ],
  ])("has one line for %s", async (_name, ask, expected) => {
    const { headers } = await ask();
    const lines = logLinesOf(headers.get("x-request-id")).filter(({ msg }) => msg === "answered");
    expect(lines).toEqual([
      expect.objectContaining({ level: 30, durationMs: expect.any(Number), ...expected }),
    ]);
  });

  it("has the request id in every line of a request", async () => {
    world.sandbox.social.faults.add({ times: 2, then: { status: 500, body: "no" } });
    const { headers } = await world.lookup("unlucky");
    const lines = logLinesOf(headers.get("x-request-id"));
    expect(lines).toEqual([
      expect.objectContaining({
        level: 40,
        msg: "answered",
        code: "SOCIAL_API_UNAVAILABLE",
        cause: "the social network: refused 500",
        hint: expect.stringContaining("SOCIAL_API_URL"),
      }),
    ]);
    expect(JSON.stringify(lines)).not.toContain("stack");
  });

  it("has the request's id in the line of a collect", async () => {
    const { headers, body } = await world.collect(world.account("artist004").id);
    expect(logLinesOf(headers.get("x-request-id"))).toEqual([
      expect.objectContaining({ msg: "answered", operation: "collect" }),
      expect.objectContaining({ msg: "collected", signature: body.txSignature }),
    ]);
  });

  it.each([
    [
      "the social network",
      () => world.sandbox.social.faults.add({ then: { status: 503, body: "" } }),
      "SOCIAL_API_UNAVAILABLE",
      "SOCIAL_API_URL",
    ],
    [
      "the chain",
      () => world.sandbox.rpc.faults.add({ then: "reset" }),
      "LOOKUP_FAILED",
      "SOLANA_RPC_URL",
    ],
  ])(
    "has one warning for an outage of %s, with the code, the cause and what to check",
    async (_name, fail, code, variable) => {
      const lift = fail();
      const handles = ["artist001", "artist002", "artist003"];
      const { headers, body } = await world.graphql(
        "query ($handles: [String!]!) { wallets(handles: $handles) { balance { total } } }",
        { handles },
      );
      lift();
      expect(body.errors).toHaveLength(3);
      const warnings = logLinesOf(headers.get("x-request-id")).filter(({ level }) => level > 30);
      expect(warnings).toEqual([
        expect.objectContaining({
          level: 40,
          code,
          msg: "answered",
          cause: expect.stringMatching(/./),
          hint: expect.stringContaining(variable),
        }),
      ]);
    },
  );

  it.each([
    [401, "a refused token", {}, "If it is invalid, set a new one and restart; if the network"],
    [402, "used-up credit", {}, "add credit in the network's developer console. No restart"],
    [403, "refused access", {}, "restore its access"],
    [429, "a usage cap", { type: "https://api.example/2/problems/usage-capped" }, "No restart"],
  ])(
    "has the cause and what to do in each request's line when the network answers %i: %s",
    async (status, _name, body, advice) => {
      const refused = await startWorld();
      onTestFinished(refused.close);
      refused.sandbox.social.faults.add({ then: { status, body: JSON.stringify(body) } });
      // After five, the circuit breaker refuses calls.
      for (let i = 0; i < 7; i++) await refused.lookup(`stranger${i}`);
      const lines = refused.logLines
        .map((line) => JSON.parse(line) as Line)
        .filter(({ requestId, level }) => requestId !== undefined && level > 20);
      expect(lines).toEqual(
        Array.from({ length: 7 }, () =>
          expect.objectContaining({
            level: 40,
            msg: "answered",
            code: "SOCIAL_API_UNAVAILABLE",
            cause: expect.stringContaining(`refused ${status}`),
            hint: expect.stringContaining(advice),
          }),
        ),
      );
    },
  );

  it("has one warning, with the cause and what to do, for a collect that the fee payer cannot pay", async () => {
    const { chain, feePayer } = world.sandbox;
    const balance = chain.balance(feePayer);
    chain.setBalance(feePayer, chain.rentExemptMinimum(0));
    const { headers, body } = await world.collect(world.account("artist005").id);
    chain.setBalance(feePayer, balance);
    expect(body.error).toBe("INSUFFICIENT_FUNDS");
    const lines = logLinesOf(headers.get("x-request-id")).filter(({ msg }) => msg === "answered");
    expect(lines).toEqual([
      expect.objectContaining({
        level: 40,
        code: "INSUFFICIENT_FUNDS",
        cause: expect.stringContaining("the fee payer cannot pay"),
        hint: expect.stringContaining("send it some"),
      }),
    ]);
  });

  it("has one warning, with the signature, for a collect that outlives its caller", async () => {
    const short = await startWorld({ COLLECT_TIMEOUT_MS: "2000" });
    onTestFinished(() => {
      short.sandbox.rpc.faults.clear();
      return short.close();
    });
    short.sandbox.rpc.faults.add({ when: isLook, then: "reset" });
    let signature: string | undefined;
    // A busy machine may need longer to sign and send.
    while (!signature) {
      short.logLines.length = 0;
      const { body } = await short.collect(short.account("creator").id);
      signature = /whether transaction (\w+) lands/.exec(body.message as string)?.[1];
    }
    const lines = short.logLines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ code }) => code === "COLLECT_FAILED");
    expect(lines).toEqual([
      expect.objectContaining({
        level: 40,
        cause: expect.stringContaining(signature),
        hint: expect.stringContaining("COLLECT_TIMEOUT_MS"),
      }),
    ]);
  });

  it("has a line for a request above the rate limit only at debug level", async () => {
    const from = { "x-forwarded-for": "192.0.2.9" };
    await world.lookup("creator", from);
    await world.lookup("creator", from);
    const { headers } = await world.lookup("creator", from);
    expect(logLinesOf(headers.get("x-request-id"))[0]).toMatchObject({
      level: 20,
      code: "RATE_LIMITED",
      status: 429,
    });
  });
});

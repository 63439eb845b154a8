import { describe, expect } from "vitest";
import { withWorld, world } from "../support/fixtures.ts";

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
      "a collect",
      () => world.collect(world.account("creator").id),
      { operation: "collect", code: "OK", status: 200 },
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

import { afterEach, describe, expect } from "vitest";
import { eventually } from "../support/eventually.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { runProduction } from "../support/production.ts";

/** A fault that slows an upstream down lasts less. */
const DEADLINE_MS = 6_000;

const it = withWorld({
  SOCIAL_TIMEOUT_MS: String(DEADLINE_MS),
  RPC_TIMEOUT_MS: String(DEADLINE_MS),
  SOCIAL_CACHE_SECONDS: "0",
  RATE_LIMIT_MAX: "1000",
});
afterEach(() => send({ seconds: 0 }));

/** Sends a request of a caller on this machine, without a proxy. */
async function send(body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${world.url}/sandbox/faults`, {
    method: "POST",
    headers,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}
/** Ends faults, and waits until lookups succeed again. */
async function recover() {
  expect((await send({ seconds: 0 })).status).toBe(200);
  await eventually(async () => {
    expect((await world.lookup("creator")).status).toBe(200);
  });
}

describe("POST /sandbox/faults", () => {
  it.each([
    ["chain", "fail", 500, "LOOKUP_FAILED"],
    ["chain", "throttle", 500, "LOOKUP_FAILED"],
    ["chain", "hang", 500, "LOOKUP_FAILED"],
    ["network", "fail", 503, "SOCIAL_API_UNAVAILABLE"],
    ["network", "hang", 503, "SOCIAL_API_UNAVAILABLE"],
    ["network", "throttle", 429, "SOCIAL_RATE_LIMITED"],
  ])("makes the %s %s, so that lookups fail until it ends", async (upstream, fault, ...answer) => {
    const request = { upstream, fault, seconds: 300 };
    expect(await send(request)).toEqual({ status: 200, body: request });
    const { status, body } = await world.lookup("creator");
    expect([status, body.error]).toEqual(answer);
    await recover();
  });

  it.each(["chain", "network"])(
    "makes the %s slow, but its answers are right",
    async (upstream) => {
      await send({ upstream, fault: "slow", seconds: 300 });
      const startedAt = performance.now();
      const { status, body } = await world.lookup("creator");
      expect([status, body.balance.total]).toEqual([200, "8.3000"]);
      // Timers may be early by a millisecond.
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_990);
    },
  );

  it("ends a fault after its seconds, also if another has replaced it", async () => {
    await send({ upstream: "network", fault: "hang", seconds: 300 });
    await send({ upstream: "network", fault: "throttle", seconds: 1 });
    await eventually(async () => {
      expect((await world.lookup("creator")).status).toBe(200);
    });
  });

  it("ends the faults of one upstream", async () => {
    await send({ upstream: "network", fault: "hang", seconds: 300 });
    await send({ upstream: "chain", fault: "fail", seconds: 300 });
    await send({ upstream: "network", seconds: 0 });
    const { body } = await world.lookup("creator");
    expect(body.error).toBe("LOOKUP_FAILED");
    await recover();
  });

  it("says what is wrong with a request, which then has no effect", async () => {
    const good = { upstream: "chain", fault: "fail", seconds: 30 };
    for (const [body, message] of [
      ["", "Send JSON such as"],
      ["[]", "Send JSON such as"],
      [JSON.stringify({ ...good, padding: "x".repeat(1024) }), "Send JSON such as"],
      [{}, "`seconds`: "],
      [{ ...good, upstream: undefined }, "is missing"],
      [
        { ...good, upstream: "redis" },
        '`upstream`: Invalid option: expected one of "chain"|"network"',
      ],
      [{ ...good, fault: undefined }, "is missing"],
      [{ ...good, fault: "toString" }, "`fault`: "],
      [{ ...good, seconds: "30" }, "`seconds`: Invalid input: expected number, received string"],
      [{ ...good, seconds: -1 }, "`seconds`: Too small: expected number to be >=0"],
      [{ ...good, seconds: 0.5 }, "`seconds`: "],
      [{ ...good, seconds: 301 }, "`seconds`: Too big: expected number to be <=300"],
      [{ upstream: "redis", seconds: 0 }, "`upstream`: "],
    ] as const) {
      const answer = await send(body);
      expect([body, answer.status]).toEqual([body, 400]);
      expect(answer.body).toEqual({
        error: "BAD_REQUEST",
        message: expect.stringContaining(message),
      });
    }
    expect((await world.lookup("creator")).status).toBe(200);
  });

  it("is refused for callers elsewhere, and for pages", async () => {
    const fault = { upstream: "chain", fault: "fail", seconds: 300 };
    for (const headers of [
      { "x-forwarded-for": "192.0.2.1" },
      { "x-forwarded-for": "127.0.0.1" },
      { origin: "https://example.com" },
    ]) {
      const { status, body } = await send(fault, headers);
      expect([status, body.error]).toEqual([403, "BAD_REQUEST"]);
    }
    expect((await world.lookup("creator")).status).toBe(200);
  });
});

it("a service in production has no /sandbox/faults, even on a sandbox's chain", async () => {
  const { client } = await runProduction(world.sandbox);
  const answer = await fetch(`${client.url}/sandbox/faults`, { method: "POST", body: "{}" });
  expect(answer.status).toBe(404);
});

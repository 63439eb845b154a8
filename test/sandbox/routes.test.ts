import { afterEach, describe, expect } from "vitest";
import { from } from "../support/client.ts";
import { runProduction } from "../support/production.ts";
import { chain, withNewWorld, withWorld, world } from "../support/fixtures.ts";
import { createSkipTime } from "../support/skip-time.ts";

const ENV = { SOCIAL_CACHE_SECONDS: "0", RATE_LIMIT_MAX: "1000" };
const it = withWorld(ENV);
/** For a test that skips time: the clocks then go back. */
const withOwnWorld = withNewWorld(ENV);

afterEach(() => sendFault({ seconds: 0 }));

/** Sends a request of a caller on this machine, without a proxy. */
async function sendFault(body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${world.url}/sandbox/faults`, {
    method: "POST",
    headers,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}
/** Ends faults, and waits until lookups succeed again. */
async function recover() {
  expect((await sendFault({ seconds: 0 })).status).toBe(200);
  await expect.poll(async () => (await world.lookup("creator")).status).toBe(200);
}

describe("POST /sandbox/fees", () => {
  it.each(["VAULT", "CURVE", "POOL"])("earns fees at %s, which a collect moves", async (source) => {
    const { id, address } = world.account("newcomer");
    const { status, body } = await world.post("/sandbox/fees", { socialId: id, source });
    expect(status).toBe(200);
    const before = chain.balance(address);
    const mints = body.mint ? [body.mint] : [];
    for (const mint of mints) {
      const { body } = await world.request(`/wallet/lookup?handle=newcomer&mint=${mint}`);
      expect(body.coins).toMatchObject([{ stage: source, reason: null }]);
    }
    expect((await world.collect(id, {}, mints)).body).toMatchObject({ success: true });
    expect(String(chain.balance(address) - before)).toBe(body.lamports);
  });

  it.each([
    ["7", "The sandbox has no account with this `socialId`."],
    [undefined, "Send JSON such as"],
  ])(
    "refuses the id %s, so that callers add no accounts to the chain",
    async (socialId, message) => {
      const { status, body } = await world.post("/sandbox/fees", { socialId, source: "CURVE" });
      expect([status, body]).toEqual([
        400,
        { error: "BAD_REQUEST", message: expect.stringContaining(message) },
      ]);
    },
  );

  it("counts against the caller's rate limit", async () => {
    const { headers } = await world.post("/sandbox/fees", {}, from("192.0.2.7"));
    expect(headers.get("ratelimit")).toContain("r=999;");
  });
});

it.each(["/sandbox/fees", "/sandbox/faults"])(
  "a service in production has no %s, even on a sandbox's chain",
  async (path) => {
    const { client } = await runProduction(world.sandbox);
    expect((await client.post(path, {})).status).toBe(404);
  },
);

describe("POST /sandbox/faults", () => {
  withOwnWorld.each([
    ["chain", "fail", 500, "LOOKUP_FAILED"],
    ["network", "throttle", 429, "SOCIAL_RATE_LIMITED"],
  ])("makes the %s %s, so that lookups fail until it ends", async (upstream, fault, ...answer) => {
    const request = { upstream, fault, seconds: 300 };
    const skip = createSkipTime();
    expect(await sendFault(request)).toEqual({ status: 200, body: request });
    const { status, body } = await world.lookup("creator");
    expect([status, body.error]).toEqual(answer);
    // The network throttles callers for five seconds.
    skip(6_000);
    await recover();
  });

  withOwnWorld(
    "makes the network slow, so that a lookup takes two seconds and succeeds",
    async () => {
      const request = { upstream: "network", fault: "slow", seconds: 300 };
      expect((await sendFault(request)).status).toBe(200);
      const startedAt = performance.now();
      expect((await world.lookup("creator")).status).toBe(200);
      // Timers may fire a millisecond early.
      expect(performance.now() - startedAt).toBeGreaterThan(1_990);
    },
  );

  it("says what it expects of a wrong request, which has no effect", async () => {
    const good = { upstream: "chain", fault: "fail", seconds: 30 };
    for (const body of [
      "[]",
      JSON.stringify({ ...good, padding: "x".repeat(1024) }),
      { ...good, upstream: undefined },
      { ...good, upstream: "redis" },
      { ...good, fault: "toString" },
      { ...good, seconds: -1 },
      { ...good, seconds: 301 },
    ]) {
      const answer = await sendFault(body);
      expect([body, answer.status]).toEqual([body, 400]);
      expect(answer.body).toEqual({
        error: "BAD_REQUEST",
        message: expect.stringMatching(/^Send JSON such as .* at most 300\.$/),
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
      const { status, body } = await sendFault(fault, headers);
      expect([status, body.error]).toEqual([403, "BAD_REQUEST"]);
    }
    expect((await world.lookup("creator")).status).toBe(200);
  });
});

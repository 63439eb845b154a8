import { describe, expect } from "vitest";
import { atOnce, type Answer } from "../support/client.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { startWorld } from "../support/world.ts";

/** Longer than any test run. */
const WINDOW_SECONDS = 3_600;
const it = withWorld({ RATE_LIMIT_WINDOW_SECONDS: WINDOW_SECONDS });

let callers = 0;
/** Headers of a caller without earlier requests. */
const newCaller = () => ({ "x-forwarded-for": `192.0.2.${++callers}` });
const passed = (answers: readonly Answer[]) =>
  answers.filter(({ status }) => status !== 429).length;
const collects = (count: number) =>
  `mutation { ${Array.from({ length: count }, (_, i) => `c${i}: collect(socialId: "99${i}") { success }`).join(" ")} }`;

it("20 of 100 concurrent requests of an address pass, on REST and GraphQL together, for lookups and collects", async () => {
  const caller = newCaller();
  const ways = [
    () => world.lookup("creator", caller),
    () => world.graphql('{ wallet(handle: "creator") { address } }', {}, caller),
    () => world.collect("99", caller),
    () => world.graphql(collects(1), {}, caller),
  ];
  expect(passed(await atOnce(100, (i) => ways[i % ways.length]!()))).toBe(20);
});

describe("a refusal", () => {
  it("is RATE_LIMITED in the error body, with Retry-After, before the request is validated", async () => {
    const caller = newCaller();
    await atOnce(20, () => world.lookup("creator", caller));
    world.forgetCalls();
    for (const [refuse, members] of [
      [() => world.lookup("artist001", caller), {}],
      [() => world.request("/wallet/lookup", { headers: caller }), {}],
      [
        () => world.collect("x", caller),
        { success: false, moved: "no", scope: "CALLER", retryAfterSeconds: expect.any(Number) },
      ],
    ] as const) {
      const { status, headers, body } = await refuse();
      const batching =
        "To look up many accounts, use GraphQL: `wallets` takes 100 handles in one request.";
      const expected = {
        ...members,
        error: "RATE_LIMITED",
        message: expect.stringContaining(batching),
      };
      expect([status, body]).toEqual([429, expected]);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(WINDOW_SECONDS - 600);
      expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(WINDOW_SECONDS);
    }
    expect(world.sandbox.social.calls).toEqual([]);
  });

  it("covers the whole GraphQL request, also an invalid one", async () => {
    const caller = newCaller();
    await atOnce(20, () => world.graphql("{ __typename }", {}, caller));
    for (const query of ["{ __typename }", "{", "{ nothing }", collects(1)]) {
      const { status, headers, body } = await world.graphql(query, {}, caller);
      expect([status, headers.get("content-type")]).toEqual([429, expect.stringContaining("json")]);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(WINDOW_SECONDS - 600);
      expect(body).toMatchObject({
        errors: [
          {
            message: expect.any(String),
            extensions: { code: "RATE_LIMITED", moved: "no", scope: "CALLER" },
          },
        ],
      });
      expect(body.data ?? null).toBeNull();
    }
  });
});

describe("the cost of a request", () => {
  it("is one for an invalid request", async () => {
    const caller = newCaller();
    await atOnce(20, (i) =>
      i % 2 ? world.lookup("not a handle", caller) : world.collect("x", caller),
    );
    expect((await world.lookup("creator", caller)).status).toBe(429);
    const other = newCaller();
    await atOnce(20, (i) => world.graphql(i % 2 ? "{" : "{ nothing }", {}, other));
    expect((await world.lookup("creator", other)).status).toBe(429);
  });

  it("is one for each operation that is refused for its cost, until plain refusals", async () => {
    const caller = newCaller();
    await atOnce(15, () => world.lookup("creator", caller));
    const costly = collects(6);
    for (const left of [4, 3, 2, 1, 0, 0]) {
      const { status, headers } = await world.graphql(costly, {}, caller);
      expect([status, headers.get("ratelimit")]).toEqual([
        429,
        expect.stringMatching(`r=${left};`),
      ]);
    }
    expect((await world.lookup("creator", caller)).status).toBe(429);
  });

  it("is zero for everything but operations", async () => {
    const caller = newCaller();
    await atOnce(15, () => world.lookup("creator", caller));
    await world.request("/graphql", { headers: { ...caller, accept: "text/html" } });
    await world.request("/livez", { headers: caller });
    await world.request("/collect", { method: "OPTIONS", headers: caller });
    await world.request("/nothing", { headers: caller });
    expect(passed(await atOnce(10, () => world.lookup("creator", caller)))).toBe(5);
  });

  it("can exceed the limit; the request is then invalid, and counts as one", async () => {
    const small = await startWorld({ RATE_LIMIT_MAX: "5" });
    try {
      const { status, headers, body } = await small.graphql(collects(6), {}, newCaller());
      expect([status, headers.get("retry-after")]).toEqual([400, null]);
      expect(headers.get("ratelimit")).toMatch(/r=4;/);
      expect(body.errors).toMatchObject([
        {
          message:
            "This request counts as 6 requests, and one request may count as at most 5. Split it.",
          extensions: { code: "BAD_REQUEST" },
        },
      ]);
    } finally {
      await small.close();
    }
  });

  it("is what `rateLimit` shows, with what is left, as the headers do", async () => {
    const caller = newCaller();
    const ask = (cost: number) => {
      const pages = Array.from(
        { length: cost - 1 },
        (_, i) =>
          `w${i}: walletById(socialId: "${i + 1}") { history(first: 1) { nodes { kind } } }`,
      );
      return world.graphql(
        `{ rateLimit { limit cost remaining resetSeconds } ${pages.join(" ")} }`,
        {},
        caller,
      );
    };
    let remaining = 20;
    for (const cost of [1, 1, 4, 1]) {
      const { body, headers } = await ask(cost);
      const { resetSeconds } = body.data.rateLimit;
      remaining -= cost;
      expect(body.data.rateLimit).toEqual({
        limit: 20,
        cost,
        remaining,
        resetSeconds: expect.any(Number),
      });
      expect(headers.get("ratelimit")).toBe(`"address";r=${remaining};t=${resetSeconds}`);
    }
  });
});

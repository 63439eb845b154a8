import { beforeEach, describe, expect } from "vitest";
import { atOnce, from } from "../support/client.ts";
import { withWorld, world } from "../support/fixtures.ts";

/** The address that has used up its limit. */
const REFUSED = from("203.0.113.9");
const RATE_LIMIT_MAX = 5;

const it = withWorld({ RATE_LIMIT_MAX: String(RATE_LIMIT_MAX) });
beforeEach(() => atOnce(RATE_LIMIT_MAX, () => world.lookup("creator", REFUSED)));

describe("an `Accept` header", () => {
  const page = async (accept: string) =>
    (await world.request("/graphql", { headers: { accept } })).headers;

  it("that is longer than any client's is ignored", async () => {
    const types = "text/html,".repeat(50);
    expect((await page(types.slice(0, -1))).get("content-type")).toContain("text/html");
    expect((await page(`${types}text/html`)).get("content-type")).toContain("application/json");
    const answer = await world.request("/graphql?query={__typename}", {
      headers: { accept: "a/b,".repeat(3_000) },
    });
    expect(answer).toMatchObject({ status: 200, body: { data: { __typename: "Query" } } });
  });
});

describe("a file whose response is above 400 kB", () => {
  const LARGE = "/assets/graphiql-viewer.js";
  const get = (path: string, headers: Record<string, string>, method = "GET") =>
    world.request(path, { method, headers });

  it.each([
    ["compressed", { "accept-encoding": "gzip" }],
    ["of which only a part is requested", { "accept-encoding": "gzip", range: "bytes=0-9" }],
  ])("counts against the rate limit: %s", async (_name, headers) => {
    const first = await get(LARGE, headers);
    expect([first.status, first.headers.get("ratelimit")]).toMatchObject([
      200,
      expect.stringMatching(/^"address";r=4;/),
    ]);
    const { status, body, headers: received } = await get(LARGE, { ...headers, ...REFUSED });
    expect([status, body.error]).toEqual([429, "RATE_LIMITED"]);
    expect(received.has("retry-after")).toBe(true);
    expect(received.get("cache-control")).toBe("no-store");
  });

  it("does not count if it is not sent: 304, HEAD", async () => {
    const { headers } = await get(LARGE, {});
    const unchanged = await get(LARGE, { ...REFUSED, "if-none-match": headers.get("etag")! });
    const head = await get(LARGE, REFUSED, "HEAD");
    expect([unchanged.status, head.status]).toEqual([304, 200]);
    for (const answer of [unchanged, head]) expect(answer.headers.has("ratelimit")).toBe(false);
  });

  it("is not one that is smaller when it is compressed", async () => {
    const { status, headers } = await get("/openapi.json", {
      ...REFUSED,
      "accept-encoding": "gzip",
    });
    expect([status, headers.has("ratelimit")]).toEqual([200, false]);
  });
});

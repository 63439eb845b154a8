import { afterEach, describe, expect, it } from "vitest";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

const LISTED = "https://app.example";
const OTHER = "https://other.example";

let world: World;
const start = async (env: Record<string, string> = {}) => {
  world = await startWorld({ CORS_ORIGINS: `${LISTED}, https://second.example/`, ...env });
};
afterEach(() => world.close());

/** A collect as a hostile page's form sends it, without preflight. */
const collectFrom = (origin: string) =>
  world.request("/collect", {
    method: "POST",
    headers: { origin, "content-type": "text/plain" },
    body: JSON.stringify({ socialId: world.account("creator").id }),
  });
const preflightFrom = (origin: string) =>
  world.request("/collect", { method: "OPTIONS", headers: { origin } });

describe("CORS_ORIGINS", () => {
  it("lets the pages of its origins call the API, and only them read the answers", async () => {
    await start();
    for (const origin of [LISTED, "https://second.example"]) {
      for (const { status, headers } of [
        await world.lookup("creator", { origin }),
        await world.graphql("{ __typename }", {}, { origin }),
        await preflightFrom(origin),
      ]) {
        expect([status < 300, headers.get("access-control-allow-origin")]).toEqual([true, origin]);
        expect([headers.get("vary"), headers.get("access-control-expose-headers")]).toEqual([
          "Origin",
          expect.stringContaining("Retry-After"),
        ]);
      }
    }
  });

  it("refuses the pages of other origins before anything runs", async () => {
    await start();
    for (const origin of [OTHER, "null", `${LISTED}:444`, "http://app.example"]) {
      for (const { status, headers, body } of [
        await collectFrom(origin),
        await preflightFrom(origin),
        await world.lookup("creator", { origin }),
        await world.graphql("{ __typename }", {}, { origin }),
        await world.request("/", { headers: { origin } }),
        await world.request("/nowhere", { headers: { origin } }),
      ]) {
        expect([status, body.error, headers.get("vary")]).toEqual([403, "ORIGIN_NOT_ALLOWED", "Origin"]);
        expect(headers.has("access-control-allow-origin")).toBe(false);
      }
    }
    expect(world.sandbox.rpc.calls.some(isMethod("sendTransaction"))).toBe(false);
  });

  it("answers callers that are no page, and the service's own pages", async () => {
    await start();
    const { status, headers } = await world.lookup("creator");
    expect([status, headers.get("vary")]).toEqual([200, "Origin"]);
    expect((await collectFrom(new URL(world.url).origin)).body.success).toBe(true);
  });

  it("takes PUBLIC_URL for the service's own origin, whatever the request's host is", async () => {
    await start({ PUBLIC_URL: "https://tributary.example/api" });
    expect((await collectFrom(new URL(world.url).origin)).status).toBe(403);
    expect((await collectFrom("https://tributary.example")).body.success).toBe(true);
  });

  it("is * by default: any page may call the API", async () => {
    await start({ CORS_ORIGINS: "*" });
    const { body, headers } = await collectFrom(OTHER);
    expect([body.success, headers.get("access-control-allow-origin")]).toEqual([true, "*"]);
  });
});

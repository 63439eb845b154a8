import { describe, expect, onTestFinished } from "vitest";
import { listen } from "../../src/http/server.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { sendRaw } from "../support/raw-request.ts";
import { startWorld } from "../support/world.ts";

const LISTED = "https://app.example";
const OTHER = "https://other.example";

const it = withWorld({ CORS_ORIGINS: `${LISTED}, https://second.example/` });

/** A world with another configuration, until the end of the test. */
async function start(env: Record<string, string>) {
  const own = await startWorld(env);
  onTestFinished(own.close);
  return own;
}
/** A collect as a hostile page's form sends it, without preflight. */
const collectFrom = (origin: string, { request, account } = world) =>
  request("/collect", {
    method: "POST",
    headers: { origin, "content-type": "text/plain" },
    body: JSON.stringify({ socialId: account("creator").id }),
  });
const preflightFrom = (origin: string) =>
  world.request("/collect", { method: "OPTIONS", headers: { origin } });

describe("CORS_ORIGINS", () => {
  it("lets the pages of its origins call the API, and only them read the answers", async () => {
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
    const { status, headers } = await world.lookup("creator");
    expect([status, headers.get("vary")]).toEqual([200, "Origin"]);
    const file = await world.request("/assets/page.css");
    expect(file.headers.get("vary")).toBe("Accept-Encoding, Origin");
  });

  it("takes the origins of browser extensions and apps", async () => {
    const origins = ["chrome-extension://abcdefghij", "capacitor://localhost"];
    const { lookup } = await start({ CORS_ORIGINS: origins.join() });
    for (const origin of origins) {
      const { headers } = await lookup("creator", { origin });
      expect(headers.get("access-control-allow-origin")).toBe(origin);
    }
    expect((await lookup("creator", { origin: "chrome-extension://other" })).status).toBe(403);
  });

  it("refuses the pages of other origins before anything runs", async () => {
    world.forgetCalls();
    for (const origin of [OTHER, "null", `${LISTED}:444`, "http://app.example"]) {
      for (const { status, headers, body } of [
        await collectFrom(origin),
        await preflightFrom(origin),
        await world.graphql("{ __typename }", {}, { origin }),
        await world.request("/", { headers: { origin } }),
      ]) {
        expect([status, body.error, headers.get("vary")]).toEqual([
          403,
          "ORIGIN_NOT_ALLOWED",
          "Origin",
        ]);
        expect(headers.has("access-control-allow-origin")).toBe(false);
      }
    }
    expect(world.chainCalls()).not.toContain("sendTransaction");
  });

  it("refuses what pages of other sites load from the API without naming themselves, such as images", async () => {
    world.forgetCalls();
    for (const destination of ["image", "empty"]) {
      const headers = { "sec-fetch-site": "cross-site", "sec-fetch-dest": destination };
      for (const { status, body } of [
        await world.lookup("creator", headers),
        await world.request("/graphql?query={__typename}", { headers }),
        await world.collect(world.account("creator").id, headers),
      ])
        expect([status, body.error]).toEqual([403, "ORIGIN_NOT_ALLOWED"]);
    }
    expect(world.sandbox.social.calls).toEqual([]);
  });

  it("answers links from other sites, same-site pages, and listed pages", async () => {
    const answered: Record<string, string>[] = [
      { "sec-fetch-site": "cross-site", "sec-fetch-dest": "document" },
      { "sec-fetch-site": "same-site", "sec-fetch-dest": "image" },
      { "sec-fetch-site": "cross-site", "sec-fetch-dest": "empty", origin: LISTED },
    ];
    for (const headers of answered)
      expect((await world.lookup("creator", headers)).status).toBe(200);
  });

  it("refuses pages at the request's host, whose name may have been rebound to the service", async () => {
    const { port } = new URL(world.url);
    const request = (host: string) =>
      `GET /wallet/lookup?handle=creator HTTP/1.1\r\nHost: ${host}\r\nOrigin: http://${host}\r\nConnection: close\r\n\r\n`;
    const statusesOf = async (host: string) => (await sendRaw(world.url, request(host))).statuses;
    for (const host of ["rebound.example", "localhost"])
      expect(await statusesOf(`${host}:${port}`)).toEqual([403]);
  });

  it("takes PUBLIC_URL for the service's own origin, whatever the request's host is", async () => {
    const own = await start({
      CORS_ORIGINS: LISTED,
      PUBLIC_URL: "https://tributary.example/api",
    });
    expect((await collectFrom(new URL(own.url).origin, own)).status).toBe(403);
    expect((await collectFrom("https://tributary.example", own)).body.success).toBe(true);
  });

  it("is * by default: any page may call the API", async () => {
    const own = await start({ CORS_ORIGINS: "*" });
    const { body, headers } = await collectFrom(OTHER, own);
    expect([body.success, headers.get("access-control-allow-origin")]).toEqual([true, "*"]);
    const image = { "sec-fetch-site": "cross-site", "sec-fetch-dest": "image" };
    expect((await own.lookup("creator", image)).status).toBe(200);
    expect((await own.request("/assets/page.css")).headers.get("vary")).toBe("Accept-Encoding");
  });
});

describe("what only operators need", () => {
  const corsHeaders = ({ headers }: { headers: Headers }) =>
    [...headers.keys()].filter((name) => name.startsWith("access-control-"));

  it.each(["*", LISTED])("has no CORS headers if CORS_ORIGINS is %s", async (CORS_ORIGINS) => {
    const own = await start({ CORS_ORIGINS });
    const admin = await listen(own.gateway.admin, { host: "127.0.0.1", port: 0 });
    for (const url of [`${own.url}/metrics`, `${admin.url}/readyz`, `${admin.url}/nowhere`])
      for (const method of ["GET", "OPTIONS"])
        expect([
          url,
          corsHeaders(await fetch(url, { method, headers: { origin: LISTED } })),
        ]).toEqual([url, []]);
    expect((await sendRaw(admin.url, "BREW / HTTP/1.1\r\n\r\n")).received).not.toMatch(
      /access-control-/i,
    );
    expect(corsHeaders(await own.lookup("creator", { origin: LISTED }))).not.toEqual([]);
    await admin.close();
  });
});

import { request as httpRequest } from "node:http";
import { readFileSync } from "node:fs";
import { once } from "node:events";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { createGateway } from "../../../src/gateway.ts";
import type { Answer } from "../../support/client.ts";
import { startWorld, type World } from "../../support/world.ts";

const HTML = { accept: "text/html" };
const PAGES = ["/", "/docs", "/graphql"];

let world: World;
beforeAll(async () => {
  world = await startWorld({ BASE_PATH: "/base", RATE_LIMIT_MAX: "1" });
});
afterAll(() => world.close());

/** The URLs in a page's `src` and `href` attributes. */
const urlsIn = (body: string) => [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url!);
const assetsOf = async (path: string) =>
  urlsIn((await world.request(path, { headers: HTML })).body).filter((url) => url.startsWith("assets/"));

describe.each(PAGES)("the page at %s", (path) => {
  let page: Answer;
  beforeAll(async () => {
    page = await world.request(path, { headers: HTML });
  });

  it("has no inline script or style, and may load nothing from other origins", () => {
    expect(page.body).toMatch(/^<!doctype html>\n<html lang="en">/);
    expect(page.body).not.toMatch(/<script(?![^>]* src=)|<style| on\w+=| style=/);
    const policy = page.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'; script-src 'self'; ");
    expect(policy).toContain("connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'; base-uri 'none'");
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
  });

  it("has only relative URLs, and all of them exist", async () => {
    for (const url of urlsIn(page.body)) {
      expect(url).toMatch(/^(?![a-z]+:|\/)/);
      const { body } = await world.request(`/${url.replace(/^\.\//, "")}`, { headers: HTML });
      expect([url, body.error]).not.toEqual([url, "NOT_FOUND"]);
    }
  });

  it("is revalidated each time, with 304 when it is unchanged", async () => {
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const headers = { ...HTML, "if-none-match": page.headers.get("etag")! };
    const { status, body } = await world.request(path, { headers });
    expect([status, body]).toEqual([304, ""]);
  });

  it("answers HEAD with the headers of GET", async () => {
    const head = await world.request(path, { method: "HEAD", headers: HTML });
    expect([head.status, head.body]).toEqual([200, ""]);
    for (const name of ["etag", "content-type", "content-security-policy"])
      expect(head.headers.get(name)).toBe(page.headers.get(name));
  });
});

describe("an asset", () => {
  it("is immutable at the URL with its version, and revalidated at others", async () => {
    for (const path of PAGES) {
      for (const url of await assetsOf(path)) {
        const { headers } = await world.request(`/${url}`);
        expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
        const other = await world.request(`/${url}x`);
        expect([other.status, other.headers.get("cache-control")]).toEqual([200, "no-cache"]);
      }
    }
  });

  it("is compressed for clients that accept gzip, with the same content", async () => {
    for (const url of await assetsOf("/graphql")) {
      const plain = await raw(`/${url}`, "gzip;q=0, identity");
      const compressed = await raw(`/${url}`, "br, gzip");
      expect(plain.headers["content-encoding"]).toBeUndefined();
      expect(compressed.headers).toMatchObject({ "content-encoding": "gzip", vary: "Accept-Encoding" });
      expect(gunzipSync(compressed.body).equals(plain.body)).toBe(true);
    }
  });

  it("is served from a fixed list: a request path never reads a file", async () => {
    for (const name of ["index.html", "..%2fpages.ts", "%2e%2e/pages.ts", "../../main.ts", "toString", ""])
      expect((await world.request(`/assets/${name}`)).status).toBe(404);
  });
});

it("the base path without a slash redirects to the first page", async () => {
  const { status, headers } = await world.request("", { redirect: "manual" });
  expect([status, headers.get("location")]).toEqual([308, "base/"]);
  expect((await world.request("")).body).toContain("<h1>Tributary</h1>");
});

it("pages do not count against the rate limit", async () => {
  const caller = { "x-forwarded-for": "192.0.2.1" };
  for (const path of [...PAGES, "/schema.graphql", "/assets/page.css", ...PAGES])
    expect((await world.request(path, { headers: { ...HTML, ...caller } })).status).toBe(200);
  expect((await world.lookup("creator", caller)).status).toBe(200);
});

it("/schema.graphql is the GraphQL schema", async () => {
  const { headers, body } = await world.request("/schema.graphql");
  expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(body).toBe(readFileSync(new URL("../../../schema.graphql", import.meta.url), "utf8"));
});

it("/errors.md is the page of error codes, and /docs links to it", async () => {
  const { headers, body } = await world.request("/errors.md");
  expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(body).toBe(readFileSync(new URL("../../../docs/errors.md", import.meta.url), "utf8"));
  expect(urlsIn((await world.request("/docs")).body)).toContain("errors.md");
});

it("the first page mentions a sandbox only in a sandbox", async () => {
  const { body } = await world.request("/");
  expect(body).toContain("This is a sandbox: no real money.");
  expect(body).toContain('href="wallet/lookup?handle=creator"');

  const gateway = createGateway(readConfig({ ...world.sandbox.env, LOG_LEVEL: "silent" }));
  const text = await (await gateway.fetch("http://localhost/")).text();
  gateway.close();
  expect(text).toContain("<h1>Tributary</h1>");
  expect(text).not.toMatch(/sandbox/i);
});

/** Fetches a response without decoding its body. */
async function raw(path: string, acceptEncoding: string) {
  const request = httpRequest(world.url + path, { headers: { "accept-encoding": acceptEncoding } }).end();
  const [response] = await once(request, "response");
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return { headers: response.headers, body: Buffer.concat(chunks) };
}

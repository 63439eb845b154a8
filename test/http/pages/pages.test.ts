import { readFileSync } from "node:fs";
import { beforeEach, describe, expect } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { createGateway } from "../../../src/gateway.ts";
import type { Answer } from "../../support/client.ts";
import { withWorld, world } from "../../support/fixtures.ts";
import { rpcResult } from "../../support/rpc-answers.ts";
import { isMethod } from "../../support/sandbox.ts";
import { inject } from "../../support/inject.ts";

const HTML = { accept: "text/html" };
const PAGES = ["/", "/docs", "/graphql"];

const it = withWorld({ BASE_PATH: "/base", RATE_LIMIT_MAX: "1" });

/** The URLs in a page's `src` and `href` attributes. */
const urlsIn = (body: string) =>
  [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url!);
const assetsOf = async (path: string) =>
  urlsIn((await world.request(path, { headers: HTML })).body).filter((url) =>
    url.startsWith("assets/"),
  );

describe.each(PAGES)("the page at %s", (path) => {
  let page: Answer;
  beforeEach(async () => {
    page = await world.request(path, { headers: HTML });
  });

  it("has no inline script or style, and may load nothing from other origins", () => {
    expect(page.body.trimStart()).toMatch(/^<!doctype html>\n\s*<html lang="en">/);
    expect(page.body).not.toMatch(/<script(?![^>]* src=)|<style| on\w+=| style=/);
    const policy = page.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'; script-src 'self'; ");
    expect(policy).toContain("connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'; base-uri 'none'");
    // The one exception, for profile pictures: the network's, and the sandbox's.
    const pictures = "img-src 'self' https://pbs.twimg.com http://127.0.0.1:*;";
    const others = path === "/" ? policy!.replace(pictures, "") : policy;
    expect(others).not.toMatch(/https?:|\*|unsafe-eval/);
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
});

describe("an asset", () => {
  const accepting = (encoding: string, path = "/assets/page.css") =>
    world.request(path, { headers: { "accept-encoding": encoding } });

  it("is immutable at the URL with its version, and revalidated at others", async () => {
    for (const url of await assetsOf("/docs")) {
      const { headers } = await world.request(`/${url}`);
      expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      const other = await world.request(`/${url}x`);
      expect([other.status, other.headers.get("cache-control")]).toEqual([200, "no-cache"]);
    }
  });

  it("is compressed, as is the home page, but not a page that names an account", async () => {
    for (const [path, encoding] of [
      ["/", "gzip"],
      ["/?handle=creator", null],
      ["/?socialId=12", null],
    ] as const)
      expect((await accepting("gzip", path)).headers.get("content-encoding")).toBe(encoding);
    const plain = await accepting("gzip;q=0, identity");
    const { headers, body } = await accepting("br, gzip");
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect([headers.get("content-encoding"), headers.get("vary")]).toEqual([
      "gzip",
      "Accept-Encoding",
    ]);
    expect(body).toBe(plain.body);
    // This one is compressed in another thread.
    const large = await accepting("gzip", "/assets/swagger-ui.js");
    expect(large.headers.get("content-encoding")).toBe("gzip");
    expect(large.body).toContain("SwaggerUIBundle");
  });

  it("that is a script loads its modules at the URLs with their versions", async () => {
    const { body } = await world.request("/assets/home/home.js");
    expect(body).toMatch(/ from "\.\/api\.js\?v=[\w-]+";/);
    expect(body).not.toMatch(/ from "[^"?]+"/);
  });

  it("is served from a fixed list: a request path never reads a file", async () => {
    for (const name of ["..%2fpages.ts", "%2e%2e/pages.ts", "../../main.ts", "toString", ""])
      expect((await world.request(`/assets/${name}`)).status).toBe(404);
  });
});

it.each([
  ["text/html,application/json;q=0.9", true],
  ["application/json, text/html;q=0.9", false],
])("GraphiQL is for callers who prefer HTML: %s", async (accept, isPage) => {
  const { headers } = await world.request("/graphql?query={__typename}", { headers: { accept } });
  expect(headers.get("content-type")!.startsWith("text/html")).toBe(isPage);
});

it("the base path without a slash redirects to the first page", async () => {
  const { status, headers } = await world.request("", { redirect: "manual" });
  expect([status, headers.get("location")]).toEqual([308, "base/"]);
  expect((await world.request("")).body).toContain("<title>Tributary</title>");
});

it("large assets count against the rate limit, because they cost traffic", async () => {
  const headers = { "x-forwarded-for": "192.0.2.2" };
  const get = async () => (await world.request("/assets/swagger-ui.js", { headers })).status;
  expect([await get(), await get()]).toEqual([200, 429]);
});

it("pages do not count against the rate limit", async () => {
  const caller = { "x-forwarded-for": "192.0.2.1" };
  for (const path of [...PAGES, "/schema.graphql", "/assets/page.css", ...PAGES])
    expect((await world.request(path, { headers: { ...HTML, ...caller } })).status).toBe(200);
  expect((await world.lookup("creator", caller)).status).toBe(200);
});

it.each([
  ["/schema.graphql", "schema.graphql"],
  ["/errors.md", "docs/errors.md"],
])(
  "%s is the file %s, with the handles that HANDLE_ALLOW_UNDERSCORE allows",
  async (path, file) => {
    const text = readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8");
    const undecided = ", and underscores if the operator allows them";
    expect(text).toContain(undecided);
    const { headers, body } = await world.request(path);
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(body).toBe(text.replaceAll(undecided, ""));
    const env = { ...world.sandbox.env, LOG_LEVEL: "silent", HANDLE_ALLOW_UNDERSCORE: "true" };
    const gateway = createGateway(readConfig(env));
    expect((await inject(gateway.api, path)).body).toBe(
      text.replaceAll(undecided, " or underscores"),
    );
    gateway.close();
  },
);

it("the first page mentions a sandbox only in a sandbox, and the cluster elsewhere", async () => {
  const { body } = await world.request("/");
  expect(body).toContain("<strong>This is a sandbox: no real money.</strong>");
  expect(body).toContain('data-cluster="sandbox"');

  const text = await homePage({}, "/");
  expect(text).toContain("<title>Tributary</title>");
  expect(text).not.toContain("<aside>");
  expect(text).toContain('data-cluster="an unknown cluster"');

  const { faults } = world.sandbox.rpc;
  const devnet = "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG";
  faults.add({ when: isMethod("getGenesisHash"), then: rpcResult(devnet) });
  const gateway = createGateway(readConfig({ ...world.sandbox.env, LOG_LEVEL: "silent" }));
  await gateway.start();
  expect((await inject(gateway.api, "/")).body).toContain('data-cluster="devnet"');
  gateway.close();
  faults.clear();
});

describe("the head of the first page", () => {
  const PUBLIC_URL = "https://tributary.example/base";
  const headOf = (html: string) => html.slice(0, html.indexOf("<body"));

  it("names nothing that is no handle, and escapes what it contains", async () => {
    for (const text of ['"><script>alert(1)</script>', "$&", "<!-- head -->"]) {
      const { body } = await world.request(
        `/?handle=${encodeURIComponent(text)}&socialId=${encodeURIComponent(text)}`,
      );
      expect(headOf(body)).toContain("<title>Tributary</title>");
      expect(headOf(body)).toContain('content="noindex"');
      expect(headOf(body)).not.toContain(text);
    }
  });

  it("has link previews with URLs from PUBLIC_URL only", async () => {
    const headers = { host: "evil.example", "x-forwarded-host": "evil.example" };
    const html = await homePage({ PUBLIC_URL }, "/?handle=creator&mint=x", headers);
    expect(html).toContain('<meta property="og:title" content="@creator · Tributary" />');
    expect(html).toContain(
      '<meta property="og:url" content="https://tributary.example/base/?handle=creator" />',
    );
    const image =
      /"og:image" content="https:\/\/tributary\.example\/base(\/assets\/home\/preview\.png\?v=[^"]+)"/;
    const [, path] = image.exec(html)!;
    const { status, headers: received } = await world.request(path!);
    expect([status, received.get("content-type")]).toEqual([200, "image/png"]);
    expect(html).not.toContain("evil.example");
    expect(await homePage({ PUBLIC_URL }, "/?socialId=0123")).toContain(
      "https://tributary.example/base/?socialId=123",
    );
    expect(await homePage({}, "/?handle=creator", headers)).not.toMatch(/og:|twitter:card|evil/);
  });
});

/** The HTML of the first page of a gateway that is not on a sandbox. */
async function homePage(env: Record<string, string>, path: string, headers = {}): Promise<string> {
  const gateway = createGateway(readConfig({ ...world.sandbox.env, LOG_LEVEL: "silent", ...env }));
  const { body } = await inject(gateway.api, path, { headers });
  gateway.close();
  return body;
}

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { createGateway } from "../../../src/gateway.ts";
import { listen } from "../../../src/http/server.ts";
import { startWorld, type World } from "../../support/world.ts";

/** As Chromium sends it. */
const BROWSER =
  "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8";
const ERROR = { error: "NOT_FOUND", message: expect.any(String) };

let world: World;
beforeAll(async () => {
  world = await startWorld({ BASE_PATH: "/some/base" });
});
afterAll(() => world.close());

const request = (path: string, accept: string, method = "GET") =>
  world.request(path, { method, headers: { accept } });

describe("an unknown path", () => {
  it.each([BROWSER, "text/html", "text/*", "application/json;q=0.5, text/html"])(
    "is a page with status 404 for a caller that accepts %j",
    async (accept) => {
      for (const path of ["/nothing", "/nothing/here/at/all", "/assets/nothing.css", "/wallet/lookup/"]) {
        const { status, headers, body } = await request(path, accept);
        expect([status, headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
        expect(body).toMatch(/^<!doctype html>\n<html lang="en">/);
        expect(headers.get("vary")).toContain("Accept");
        expect(headers.get("cache-control")).toBe("no-store");
      }
    },
  );

  it.each([
    "*/*",
    "application/json",
    "text/html;q=0.5, application/json",
    "image/avif,*/*;q=0.8",
    "text/css",
  ])("is the error NOT_FOUND for a caller that accepts %j", async (accept) => {
    const { status, headers, body } = await request("/nothing", accept);
    expect([status, body]).toEqual([404, ERROR]);
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(headers.get("vary")).toBe("Accept");
  });

  it("is the error NOT_FOUND for a browser's other methods", async () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      const { status, body } = await request("/nothing", BROWSER, method);
      expect([method, status, body]).toEqual([method, 404, ERROR]);
    }
  });

  it("has the headers of GET and no body for HEAD", async () => {
    for (const accept of [BROWSER, "*/*"]) {
      const head = await request("/nothing", accept, "HEAD");
      expect([head.status, head.body]).toEqual([404, ""]);
      const get = await request("/nothing", accept);
      for (const name of ["content-type", "content-security-policy", "vary", "referrer-policy"])
        expect(head.headers.get(name)).toBe(get.headers.get(name));
    }
  });

  it("is a page under the policy of the other pages, which no search engine lists", async () => {
    const { headers, body } = await request("/nothing", BROWSER);
    const docs = await request("/docs", BROWSER);
    expect(headers.get("content-security-policy")).toBe(docs.headers.get("content-security-policy"));
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(body).toContain('<meta name="robots" content="noindex" />');
    expect(body).not.toMatch(/<script|<style| on\w+=| style=/);
  });

  it("is a page whose links and assets exist under the base path", async () => {
    const { body } = await request("/nothing/here", BROWSER);
    const urls = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url!);
    expect(urls).toEqual(expect.arrayContaining(["/some/base/", "/some/base/docs", "/some/base/graphql"]));
    for (const url of urls) {
      const answer = await request(url.replace("/some/base", ""), BROWSER);
      expect([url, answer.status]).toEqual([url, 200]);
    }
  });

  it("never contains the path, the query or the Host header", async () => {
    for (const path of ["/%3Cscript%3Ealert(1)", "/unlikely-path?unlikely-query"]) {
      const { body } = await request(path, BROWSER);
      expect(body).not.toMatch(/alert|unlikely|tributary\//);
    }
  });

  it("is always the error NOT_FOUND on the admin port, which has no pages", async () => {
    const config = readConfig({ ...world.sandbox.env, ADMIN_PORT: "0", LOG_LEVEL: "silent" });
    const gateway = createGateway(config);
    const admin = await listen(gateway.admin, { host: "127.0.0.1", port: 0 });
    const response = await fetch(`${admin.url}/nothing`, { headers: { accept: BROWSER } });
    expect([response.status, await response.json()]).toEqual([404, ERROR]);
    await admin.close();
    gateway.close();
  });
});

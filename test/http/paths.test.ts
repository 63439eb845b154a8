import { expect } from "vitest";
import { withWorld, world } from "../support/fixtures.ts";
import { sendRaw } from "../support/raw-request.ts";

const it = withWorld({ RATE_LIMIT_MAX: "1000" });

const get = (target: string) =>
  sendRaw(world.url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);

it.each([
  "/x/../metrics",
  "/./metrics",
  "/a/%2e%2e/metrics",
  "/a/.%2E/metrics",
  "/a\\..\\metrics",
  "/\\metrics",
  "//metrics",
  "/metrics#",
  "/%6detrics",
  "/metrics/",
  "http://elsewhere/x/../metrics",
  "http://elsewhere//metrics",
  "/x/../wallet/lookup?handle=creator",
  "/x/../graphql?query={__typename}",
])("the target %s has no route", async (target) => {
  const { statuses, body } = await get(target);
  expect(statuses).toEqual([404]);
  expect(body).toContain('{"error":"NOT_FOUND"');
});

it.each([
  "/metrics",
  "/metrics?x=/../y",
  "http://elsewhere/metrics",
  "HTTP://elsewhere:80/metrics?x",
  "http://elsewhere",
  "http://elsewhere?x=1",
  "/wallet/lookup?handle=creator&x=\\..",
])("the target %s has one", async (target) => {
  expect((await get(target)).statuses).toEqual([200]);
});

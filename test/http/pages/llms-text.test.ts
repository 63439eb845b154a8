import { afterAll, beforeAll, expect, it } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { codesOf, meaningOf, rowOf } from "../../../src/contract/error-codes.ts";
import { createGateway } from "../../../src/gateway.ts";
import type { Answer } from "../../support/client.ts";
import { inject } from "../../support/inject.ts";
import { startWorld, type World } from "../../support/world.ts";
import { withoutPictures } from "../../support/without-pictures.ts";

let world: World;
let page: Answer;
let text: string;
beforeAll(async () => {
  world = await startWorld({ BASE_PATH: "/base", RATE_LIMIT_MAX: "4" });
  page = await world.request("/llms.txt");
  text = page.body;
});
afterAll(() => world.close());

/** The text below a heading. */
const section = (name: string) => text.split("\n## ").find((part) => part.startsWith(`${name}\n`))!;

it("/llms.txt is at most 16,000 bytes of plain text", () => {
  expect([page.status, page.headers.get("content-type")]).toEqual([
    200,
    "text/plain; charset=utf-8",
  ]);
  // An agent has the whole text in its context: some 4,000 tokens. Not a limit for a new field, but
  // for a second copy of the documentation.
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16_000);
});

it("/llms.txt states the limit, and each contract code with its status and meaning", () => {
  expect(section("Limits")).toContain("Rate limit: 4 requests in 60 seconds");
  expect(section("Limits")).toContain("`wallets` takes 100 handles in one request");
  for (const code of [...codesOf("lookup"), ...codesOf("collect")])
    expect(section("Error codes")).toContain(
      `\n- \`${code}\` ${rowOf(code).status}: ${meaningOf(code).replace(", and underscores if the operator allows them", "")} (${rowOf(code).retry})`,
    );
});

it("/llms.txt has the routes of the sandbox, but not outside it", async () => {
  const gateway = createGateway(readConfig({ ...world.sandbox.env, LOG_LEVEL: "silent" }));
  const outside = (await inject(gateway.api, "/llms.txt")).body;
  gateway.close();
  for (const route of ["POST /sandbox/fees", "POST /sandbox/faults"]) {
    expect(text).toContain(route);
    expect(outside).not.toContain(route);
  }
});

it("/llms.txt states what a caller plans with, from the settings", async () => {
  const { env } = world.sandbox;
  expect(section("Limits")).toContain("A handle has 1-15 alphanumeric characters, without the @");
  expect(section("Limits")).toContain("of finalized blocks");
  expect(section("Limits")).toContain("`TRUSTED_CALLERS`");
  expect(section("Limits")).toContain("within some 14 minutes");
  expect(section("GraphQL")).toContain(
    "20 streams, of 100 accounts in all, and each ends after 10 minutes",
  );
  const gateway = createGateway(
    readConfig({
      ...env,
      LOG_LEVEL: "silent",
      HANDLE_ALLOW_UNDERSCORE: "true",
      COLLECT_TIMEOUT_MS: "20000",
    }),
  );
  const other = (await inject(gateway.api, "/llms.txt")).body;
  gateway.close();
  expect(other).toContain(`A handle has 1-15 alphanumeric characters or underscores`);
  expect(other).toContain("A collect can take 20 seconds");
});

it("/llms.txt has REST requests that are answered as it says", async () => {
  const examples = section("REST").matchAll(
    /^`(GET|POST) \/base(\S+)(?: (.+))?`: .+\n\n- 200: `(.+)`/gm,
  );
  let count = 0;
  for (const [, method, path, body, shown] of examples) {
    const answer = await world.request(path!, { method: method!, ...(body && { body }) });
    const expected = JSON.parse(shown!) as Record<string, unknown>;
    if (expected.txSignature) expected.txSignature = expect.any(String);
    expect([path, answer.status, withoutPictures(answer.body)]).toEqual([path, 200, expected]);
    count++;
  }
  expect(count).toBe(3);
});

it("/llms.txt links only to the service's own addresses, which exist", async () => {
  const urls = [...text.matchAll(/\]\((.+?)\)/g)].map(([, url]) => url!);
  expect(urls).toHaveLength(5);
  for (const url of urls) {
    const { status } = await world.request(url.replace("/base", ""), {
      headers: { accept: "text/html" },
    });
    expect([url, status]).toEqual([url, 200]);
  }
  expect(text).not.toContain("://");

  const gateway = createGateway(
    readConfig({
      ...world.sandbox.env,
      LOG_LEVEL: "silent",
      PUBLIC_URL: "https://tributary.example/base",
    }),
  );
  const published = (await inject(gateway.api, "/llms.txt")).body;
  gateway.close();
  expect(published).toContain("(https://tributary.example/base/openapi.json)");
});

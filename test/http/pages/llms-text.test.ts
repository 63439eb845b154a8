import { beforeEach, expect } from "vitest";
import { codesOf, meaningOf, rowOf } from "../../../src/contract/error-codes.ts";
import { withWorld, world } from "../../support/fixtures.ts";

const it = withWorld({ BASE_PATH: "/base", RATE_LIMIT_MAX: "4" });

let text: string;
beforeEach(async () => {
  text = (await world.request("/llms.txt")).body;
});

/** Without the pictures' URLs, which only the sandbox's examples have. */
const withoutPictures = (body: unknown): unknown =>
  JSON.parse(
    JSON.stringify(body, (name, value: unknown) => (name === "pictureUrl" ? undefined : value)),
  );

/** The text below a heading. */
const section = (name: string) => text.split("\n## ").find((part) => part.startsWith(`${name}\n`))!;

it("/llms.txt states the limit, and each contract code with its status and meaning", () => {
  expect(section("Limits")).toContain("Rate limit: 4 requests in 60 seconds");
  expect(section("Limits")).toContain("`wallets` takes 100 handles in one request");
  for (const code of [...codesOf("lookup"), ...codesOf("collect")])
    expect(section("Error codes")).toContain(
      `\n- \`${code}\` ${rowOf(code).status}: ${meaningOf(code).replace(", and underscores if the operator allows them", "")} (${rowOf(code).retry})`,
    );
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
});

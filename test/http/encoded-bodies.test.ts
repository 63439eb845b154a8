import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sendRaw } from "../support/raw-request.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

const TEXT = JSON.stringify({ query: "{ __typename }", socialId: "1" });
const post = (path: string, body: Buffer, headers: Record<string, string> = {}) =>
  world.request(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: new Uint8Array(body),
  });

describe.each([
  ["gzip", gzipSync(TEXT), { "content-encoding": "gzip" }],
  ["UTF-16", Buffer.from(TEXT, "utf16le"), {}],
  ["UTF-16 with a byte order mark", Buffer.from(`\ufeff${TEXT}`, "utf16le"), {}],
])("a body in %s", (_name, bytes, headers) => {
  const cause = "in UTF-8 and not compressed.";

  it("is INVALID_SOCIAL_ID for collect, with the expected encoding", async () => {
    const { status, body } = await post("/collect", bytes, headers);
    expect([status, body.error]).toEqual([400, "INVALID_SOCIAL_ID"]);
    expect(body.message).toContain(cause);
  });

  it("is BAD_REQUEST for GraphQL, with the expected encoding", async () => {
    const { status, body } = await post("/graphql", bytes, headers);
    const error = { message: expect.stringContaining(cause), extensions: { code: "BAD_REQUEST" } };
    expect([status, body]).toEqual([400, { errors: [error] }]);
  });
});

it("a collect with mints: null is one without mints", async () => {
  const { body } = await world.post("/collect", { socialId: "97", mints: null });
  expect(body).toEqual({
    success: false,
    error: "NOTHING_TO_COLLECT",
    message: expect.any(String),
    collected: "0.0000",
  });
});

it.each([
  ["/wallet/lookup?handle=creator", "200 OK"],
  ["/wallet/lookup?handle=%40", "400 Bad Request"],
  ["/wallet/lookup?handle=%40&x=1", "400 Bad Request"],
  ["/livez", "200 OK"],
  ["/nowhere", "404 Not Found"],
  ["/graphql?query={__typename}", "200 OK"],
  ["/graphql", "400 Bad Request"],
])("the response to %s has the reason phrase: %s", async (path, expected) => {
  const { received } = await sendRaw(
    world.url,
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
  );
  expect(received.split("\r\n", 1)).toEqual([`HTTP/1.1 ${expected}`]);
});

import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect } from "vitest";
import { it, world } from "../support/fixtures.ts";

const TEXT = JSON.stringify({ query: "{ __typename }", socialId: "1" });
const post = (path: string, body: Buffer, headers: Record<string, string> = {}) =>
  world.request(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: new Uint8Array(body),
  });

describe.each([
  ["gzip", gzipSync(TEXT), { "content-encoding": "gzip" }],
  ["gzip, unannounced", gzipSync(TEXT), {}],
  ["Brotli", brotliCompressSync(TEXT), { "content-encoding": "br" }],
  ["UTF-16", Buffer.from(TEXT, "utf16le"), {}],
  ["UTF-16 with a byte order mark", Buffer.from(`\ufeff${TEXT}`, "utf16le"), {}],
  ["Latin-1", Buffer.from('{"socialId":"é"}', "latin1"), {}],
])("a body in %s", (_name, bytes, headers) => {
  const cause = expect.stringContaining("in UTF-8 and not compressed");

  it("is INVALID_SOCIAL_ID for collect, which says what it expects", async () => {
    const { status, body } = await post("/collect", bytes, headers);
    expect([status, body]).toEqual([
      400,
      { success: false, error: "INVALID_SOCIAL_ID", message: cause, moved: "no" },
    ]);
  });

  it("is BAD_REQUEST for GraphQL, which says what it expects", async () => {
    const { status, body } = await post("/graphql", bytes, headers);
    const error = { message: cause, extensions: { code: "BAD_REQUEST", moved: "no" } };
    expect([status, body]).toEqual([400, { errors: [error] }]);
  });
});

it("a message quotes no control characters, and none that changes how text is shown", async () => {
  const hidden = "\u0000\u001b[2J\u007f\u0085\u202e\u2028\u200b";
  const { body } = await world.post("/collect", { socialId: `é${hidden}x` });
  expect(body.message).toContain('"é\\u0000\\u001b[2J\\u007f\\u0085\\u202e\\u2028\\u200bx"');
  const { body: unread } = await post("/collect", Buffer.from(hidden));
  const { body: handle } = await world.lookup(hidden);
  for (const { message } of [unread, handle])
    expect(message).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
});

it("a collect with mints: null is one without mints", async () => {
  const { body } = await world.post("/collect", { socialId: "97", mints: null });
  expect(body).toEqual({
    success: false,
    error: "NOTHING_TO_COLLECT",
    message: expect.any(String),
    collected: "0.0000",
    moved: "no",
    left: [],
    lastCollects: [],
  });
});

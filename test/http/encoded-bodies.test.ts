import { gzipSync } from "node:zlib";
import { expect } from "vitest";
import { it, world } from "../support/fixtures.ts";

const TEXT = JSON.stringify({ query: "{ __typename }", socialId: "1" });
const post = (path: string, body: Buffer, headers: Record<string, string> = {}) =>
  world.request(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: new Uint8Array(body),
  });

it.each([
  ["gzip", gzipSync(TEXT), { "content-encoding": "gzip" }],
  ["gzip, unannounced", gzipSync(TEXT), {}],
  ["UTF-16 with a byte order mark", Buffer.from(`\ufeff${TEXT}`, "utf16le"), {}],
  ["Latin-1", Buffer.from('{"socialId":"é"}', "latin1"), {}],
])("a body in %s is refused with what is expected", async (_name, bytes, headers) => {
  const message = expect.stringContaining("in UTF-8 and not compressed");
  const overRest = await post("/collect", bytes, headers);
  expect([overRest.status, overRest.body]).toMatchObject([
    400,
    { error: "INVALID_SOCIAL_ID", message, moved: "no" },
  ]);
  const overGraphql = await post("/graphql", bytes, headers);
  const error = { message, extensions: { code: "BAD_REQUEST", moved: "no" } };
  expect([overGraphql.status, overGraphql.body]).toEqual([400, { errors: [error] }]);
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

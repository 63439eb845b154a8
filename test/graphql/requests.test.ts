import { describe, expect } from "vitest";
import { sendRaw } from "../support/raw-request.ts";
import { withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ RATE_LIMIT_MAX: "1000000" });

const QUERY = '{ walletById(socialId: "7") { id } }';
const ANSWER = { data: { walletById: { id: "7" } } };
const post = (body: object, headers: Record<string, string> = {}) =>
  world.post("/graphql", body, headers);
const times = (count: number, text: string) => `${text} `.repeat(count);

describe("what clients send besides is ignored:", () => {
  it.each([
    ["Relay's `id`", { id: "abc" }],
    ["any member", { other: [1] }],
    ["an empty list of variables", { variables: [] }],
    ["an empty text of variables", { variables: "" }],
    ["variables that are null", { variables: null }],
    ["an empty name", { operationName: "" }],
  ])("%s", async (_name, more) => {
    const { status, body } = await post({ query: QUERY, ...more });
    expect([status, body]).toEqual([200, ANSWER]);
  });

  it.each([[[1]], ["x"], [7], [false]])("but not the variables %j", async (variables) => {
    const { status, body } = await post({ query: QUERY, variables });
    expect([status, body.errors[0].extensions.code]).toEqual([400, "BAD_REQUEST"]);
  });
});

describe("a client that expects another transport is told that subscriptions are server-sent events:", () => {
  const subscription = 'subscription { walletById(socialId: "7") { id } }';
  const SSE = expect.stringContaining("a stream of server-sent events");

  it("a websocket", async () => {
    const { statuses, body } = await sendRaw(
      world.url,
      "GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n",
    );
    expect([statuses, body]).toEqual([[400], SSE]);
  });

  it.each(["multipart/mixed", "multipart/mixed;subscriptionSpec=1.0, application/json"])(
    "`Accept: %s`",
    async (accept) => {
      const { status, body } = await post({ query: subscription }, { accept });
      expect([status, body.errors[0].message]).toEqual([406, SSE]);
    },
  );
});

it.each([1, 50, 150, 1_160])(
  "conflicting fields are found beside %i free `__typename`s",
  async (count) => {
    const free = times(count, "... { __typename }");
    const { body } = await post({
      query: `{ walletById(socialId: "7") { ${free} x: address x: socialId } }`,
    });
    expect(body.data).toBeUndefined();
    expect(body.errors[0].message).toMatch(
      count > 200 ? /^Too many merged fields/ : /^Fields "x" conflict/,
    );
  },
);

it.each([
  'subscription { walletById(socialId: "7") @skip(if: true) { id } }',
  'subscription { ... @include(if: false) { walletById(socialId: "7") { id } } }',
  'subscription { ...F @skip(if: true) } fragment F on Subscription { walletById(socialId: "7") { id } }',
])("a subscription whose field is skipped is refused: %s", async (query) => {
  world.logLines.length = 0;
  const { status, body } = await post({ query }, { accept: "text/event-stream" });
  expect([status, body.errors[0].extensions.code]).toEqual([400, "BAD_REQUEST"]);
  expect(world.logLines.filter((line) => JSON.parse(line).level >= 40)).toEqual([]);
});

import { describe, expect } from "vitest";
import { withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ RATE_LIMIT_MAX: "2" });

const JSON_TYPE = "application/json; charset=utf-8";
const GRAPHQL_TYPE = "application/graphql-response+json; charset=utf-8";
const APOLLO = "application/graphql-response+json,application/json;q=0.9";
const URQL =
  "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed";

const QUERY = "query Wallet($handle: String!) { wallet(handle: $handle) { handle address } }";
const VARIABLES = { handle: "creator" };

const post = (body: unknown, headers: Record<string, string> = {}) =>
  world.request("/graphql", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

describe("the media type of a GraphQL response", () => {
  it.each([
    [APOLLO, GRAPHQL_TYPE],
    [URQL, GRAPHQL_TYPE],
    ["*/*", JSON_TYPE],
    ["", JSON_TYPE],
    ["application/json, application/graphql-response+json", JSON_TYPE],
    ["application/json;q=0.5, application/graphql-response+json;q=0.6", GRAPHQL_TYPE],
    ["text/event-stream, application/json", JSON_TYPE],
  ])("for the header `Accept: %s` is %s", async (accept, type) => {
    for (const body of [{ query: QUERY, variables: VARIABLES }, { query: "{" }]) {
      const { headers } = await post(body, { accept });
      expect(headers.get("content-type")).toBe(type);
    }
  });

  it.each(["application/json;q=0", "text/html", "text/event-stream, multipart/mixed"])(
    "cannot satisfy `Accept: %s`, which gets a 406",
    async (accept) => {
      const { status, headers, body } = await post(
        { query: QUERY, variables: VARIABLES },
        { accept },
      );
      expect([status, headers.get("content-type")]).toEqual([406, JSON_TYPE]);
      expect(body).toEqual({
        errors: [
          {
            message: expect.stringContaining("application/graphql-response+json"),
            extensions: { code: "BAD_REQUEST", moved: "no" },
          },
        ],
      });
    },
  );

  it.each([
    ["a syntax error", { query: "{" }, 200, 400],
    ["an invalid document", { query: "{ nothing }" }, 200, 400],
    ["an invalid variable", { query: QUERY, variables: { handle: 5 } }, 200, 400],
    ["an unknown operation name", { query: QUERY, operationName: "Other" }, 200, 400],
    ["a request without a query", {}, 400, 400],
    [
      "an operation above the rate limit",
      {
        query: `mutation { ${[1, 2, 3].map((i) => `c${i}: collect(socialId: "1") { success }`).join(" ")} }`,
      },
      400,
      400,
    ],
    ["a failed field", { query: QUERY, variables: { handle: "nobody" } }, 200, 200],
  ])("decides the status of %s", async (_name, body, asJson, asGraphQL) => {
    const headers = [{}, { accept: URQL }];
    const statuses = await Promise.all(
      headers.map(async (each) => (await post(body, each)).status),
    );
    expect(statuses).toEqual([asJson, asGraphQL]);
  });
});

describe("a persisted query", () => {
  const extensions = { persistedQuery: { version: 1, sha256Hash: "ab".repeat(32) } };
  const NOT_SUPPORTED = {
    errors: [
      {
        message: "PersistedQueryNotSupported",
        extensions: { code: "PERSISTED_QUERY_NOT_SUPPORTED", moved: "no" },
      },
    ],
  };

  it("without its text is refused with the error that makes clients send the text", async () => {
    const hashed = { operationName: "Wallet", variables: VARIABLES, extensions };
    for (const [accept, expected] of [
      ["*/*", 200],
      [APOLLO, 400],
      [URQL, 400],
    ] as const) {
      const { status, body } = await post(hashed, { accept });
      expect([status, body]).toEqual([expected, NOT_SUPPORTED]);
      const search = new URLSearchParams({
        operationName: "Wallet",
        variables: JSON.stringify(VARIABLES),
        extensions: JSON.stringify(extensions),
      });
      const byGet = await world.request(`/graphql?${search}`, { headers: { accept } });
      expect([byGet.status, byGet.body]).toEqual([expected, NOT_SUPPORTED]);
    }
  });

  it("with its text runs", async () => {
    const { status, body } = await post({ query: QUERY, variables: VARIABLES, extensions });
    expect([status, body.data.wallet.handle]).toEqual([200, "creator"]);
  });

  it("is refused only for that extension: any other request without a query is BAD_REQUEST", async () => {
    const { status, body } = await post({ extensions: { clientLibrary: { name: "a" } } });
    expect([status, body.errors[0].extensions.code]).toEqual([400, "BAD_REQUEST"]);
  });
});

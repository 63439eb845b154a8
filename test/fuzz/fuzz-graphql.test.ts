import fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import type { ErrorCode } from "../../src/contract/error-codes.ts";
import { schema } from "../../src/schema/schema.ts";
import { startWorld, type World } from "../support/world.ts";
import { expectGraphQL, expectNoErrorLogged } from "../support/fuzz/contract.ts";
import { operations, type Posted } from "../support/fuzz/documents.ts";
import { fuzz } from "../support/fuzz/fuzz.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_MAX: "1000000" });
});
afterAll(() => world.close());

const BAD_INPUT: ErrorCode[] = [
  "INVALID_HANDLE",
  "INVALID_MINT",
  "INVALID_MINIMUM",
  "INVALID_SOCIAL_ID",
  "SOCIAL_NOT_FOUND",
];

const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  world.request("/graphql", {
    method: "POST",
    // A subscription gets a 406 in place of a stream.
    headers: { accept: "application/json", "content-type": "application/json", ...headers },
    body,
  });

/**
 * Sorts the errors: their order depends on which fields fail first, and cached fields fail sooner.
 * Leaves out what is left of the rate limit.
 */
const sortErrors = ({ data, errors = [] }: any) => ({
  data: JSON.stringify(data, (name, value) => (name.endsWith("rateLimit") ? undefined : value)),
  errors: errors.map((error: object) => JSON.stringify(error)).sort(),
});

/** Headers that differ between equal requests. */
const VARYING_HEADERS = ["content-length", "date", "ratelimit", "x-request-id"];
const comparable = ({ status, headers, body }: Awaited<ReturnType<typeof post>>) => ({
  status,
  headers: [...headers].filter(([name]) => !VARYING_HEADERS.includes(name)).sort(),
  ...sortErrors(body),
});

/** Sends the operation three times: the document of a valid one is cached after the first. */
async function expectSameEachTime(posted: Posted): Promise<void> {
  const body = JSON.stringify(posted);
  const first = await post(body);
  expectGraphQL(first.body, BAD_INPUT);
  // GraphQL over HTTP allows 200 for request errors when the response is application/json.
  expect(first.status).toBeOneOf(first.body.data === undefined ? [200, 400, 406] : [200]);
  for (let run = 2; run <= 3; run++)
    expect(comparable(await post(body))).toEqual(comparable(first));
  expectNoErrorLogged(world.logLines);
}

fuzz("any GraphQL operation gets the same well-formed response each time", {
  share: 0.06,
  cases: operations(schema),
  check: expectSameEachTime,
});

const body = fc.oneof(
  fc.uint8Array().map((bytes) => new Uint8Array(bytes)),
  fc.json(),
  fc.json({ stringUnit: "binary" }),
  fc
    .record(
      {
        query: fc.oneof(fc.constant("{ __typename }"), fc.jsonValue()),
        variables: fc.jsonValue(),
        operationName: fc.jsonValue(),
        extensions: fc.jsonValue(),
        other: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    .map((value) => JSON.stringify(value)),
  fc.array(fc.constant({ query: "{ __typename }" })).map((batch) => JSON.stringify(batch)),
);

fuzz("any body and accept header of a GraphQL request get a well-formed response", {
  share: 0.12,
  cases: fc.record({
    body,
    accept: fc.constantFrom(
      "application/json",
      "application/graphql-response+json",
      "text/html, */*;q=0.1",
      "text/event-stream",
      "multipart/mixed",
      "*/*",
    ),
  }),
  async check({ body, accept }) {
    const answer = await post(body, { accept });
    expect(answer.status).toBeOneOf([200, 400, 406]);
    expectGraphQL(answer.body, []);
    expectNoErrorLogged(world.logLines);
  },
});

fuzz("any GraphQL request by GET gets a well-formed response", {
  share: 0.03,
  cases: fc.record({ posted: operations(schema), rest: fc.string() }),
  async check({ posted: { query, variables }, rest }) {
    const search = new URLSearchParams({ query, variables: JSON.stringify(variables), rest });
    const { status, body } = await world.request(`/graphql?${search.toString()}`, {
      headers: { accept: "application/json" },
    });
    expect(status).toBeOneOf([200, 400, 405, 406]);
    expectGraphQL(body, BAD_INPUT);
    if (query.startsWith("mutation")) expect(body.data).toBeUndefined();
    expectNoErrorLogged(world.logLines);
  },
});

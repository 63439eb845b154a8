import { expect } from "vitest";
import type { ErrorCode } from "../../src/contract/error-codes.ts";
import { schema } from "../../src/schema/schema.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { expectGraphQL, expectNoErrorLogged } from "../support/fuzz/contract.ts";
import { operations } from "../support/fuzz/documents.ts";
import { fuzz } from "../support/fuzz/fuzz.ts";

const test = withWorld({ RATE_LIMIT_MAX: "1000000" });

const BAD_INPUT: ErrorCode[] = [
  ...(["INVALID_HANDLE", "INVALID_MINT", "INVALID_MINIMUM"] as const),
  ...(["INVALID_SOCIAL_ID", "SOCIAL_NOT_FOUND"] as const),
];

fuzz("any GraphQL operation gets a well-formed response", {
  share: 0.18,
  test,
  cases: operations(schema),
  async check(posted) {
    // A subscription gets a 406 in place of a stream.
    const { status, body } = await world.post("/graphql", posted, { accept: "application/json" });
    expectGraphQL(body, BAD_INPUT);
    // GraphQL over HTTP allows 200 for request errors when the response is application/json.
    expect(status).toBeOneOf(body.data === undefined ? [200, 400, 406] : [200]);
    expectNoErrorLogged(world.logLines);
  },
});

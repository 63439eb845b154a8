import { expect, it } from "vitest";
import { codesOf, ERROR_CODES } from "../../src/contract/error-codes.ts";
import { startWorld } from "../support/world.ts";

/** Sections 4 and 7 of the specification. */
const SPECIFIED = {
  lookup: {
    HANDLE_REQUIRED: 400,
    INVALID_HANDLE: 400,
    SOCIAL_NOT_FOUND: 404,
    SOCIAL_RATE_LIMITED: 429,
    SOCIAL_API_UNAVAILABLE: 503,
    SERVICE_BUSY: 503,
    LOOKUP_FAILED: 500,
    RATE_LIMITED: 429,
  },
  collect: {
    INVALID_SOCIAL_ID: 400,
    NOTHING_TO_COLLECT: 400,
    INSUFFICIENT_FUNDS: 500,
    COLLECT_FAILED: 500,
    RATE_LIMITED: 429,
  },
} as const;

it.each(["lookup", "collect"] as const)(
  "the table has the specified codes and statuses of %s",
  (operation) => {
    const statuses = codesOf(operation).map((code) => [code, ERROR_CODES[code].status]);
    expect(Object.fromEntries(statuses)).toMatchObject(SPECIFIED[operation]);
  },
);

it("GraphQL's ErrorCode lists every code of the table", async () => {
  const world = await startWorld();
  const { body } = await world.graphql('{ __type(name: "ErrorCode") { enumValues { name } } }');
  const names = body.data.__type.enumValues.map(({ name }: { name: string }) => name);
  expect(names).toEqual(Object.keys(ERROR_CODES));
  await world.close();
});

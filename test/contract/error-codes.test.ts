import { afterAll, describe, expect, it } from "vitest";
import { codesOf, ERROR_CODES, rowOf, type ErrorCode } from "../../src/contract/error-codes.ts";
import { SCENARIOS, startScenarioWorld } from "../support/error-scenarios.ts";
import type { World } from "../support/world.ts";

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

describe("over HTTP", () => {
  const worlds: World[] = [];
  const newWorld = async () => {
    const world = await startScenarioWorld();
    worlds.push(world);
    return world;
  };
  afterAll(() => Promise.all(worlds.map((world) => world.close())));

  it("GraphQL's ErrorCode lists every code of the table", async () => {
    const world = await newWorld();
    const { body } = await world.graphql('{ __type(name: "ErrorCode") { enumValues { name } } }');
    const names = body.data.__type.enumValues.map(({ name }: { name: string }) => name);
    expect(names).toEqual(Object.keys(ERROR_CODES));
  });

  const scenarios = Object.entries(SCENARIOS).flatMap(([operation, byCode]) =>
    Object.entries(byCode).map(([code, ask]) => ({ operation, code: code as ErrorCode, ask })),
  );
  it.each(scenarios)(
    "$code of $operation has the status and the body that the table gives",
    async ({ code, ask }) => {
      const { status, headers, body } = await ask(await newWorld());
      const row = rowOf(code);
      expect([status, body.error]).toEqual([row.status, code]);
      expect(body.message).toMatch(/^\S.{10,}\S$/);
      if (row.retryAfterSeconds !== undefined)
        expect(headers.get("retry-after")).toBe(String(row.retryAfterSeconds));
      if (status === 429) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    },
  );
});

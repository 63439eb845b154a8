import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config.ts";
import { codesOf, ERROR_CODES, rowOf, type ErrorCode } from "../../src/contract/error-codes.ts";
import { startWorld, type Answer, type World } from "../support/world.ts";

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
  "the table has every specified code of %s with its status",
  (operation) => {
    const statuses = codesOf(operation).map((code) => [code, ERROR_CODES[code].status]);
    expect(Object.fromEntries(statuses)).toMatchObject(SPECIFIED[operation]);
  },
);

const creatorId = (world: World) => world.account("creator").id;
const collect = (world: World) => world.collect(creatorId(world));
const answer429 = { status: 429, body: "{}" };

/** For each code a request over HTTP that gets it. A new code does not compile without one. */
const SCENARIOS: Readonly<Record<ErrorCode, (world: World) => Promise<Answer>>> = {
  HANDLE_REQUIRED: (world) => world.request("/wallet/lookup"),
  INVALID_HANDLE: (world) => world.lookup("@creator"),
  SOCIAL_NOT_FOUND: (world) => world.lookup("nobodyatall"),
  SOCIAL_RATE_LIMITED: (world) => {
    world.sandbox.social.faults.add({ then: answer429 });
    return world.lookup("creator");
  },
  SOCIAL_API_UNAVAILABLE: (world) => {
    world.sandbox.social.faults.add({ then: { status: 503, body: "" } });
    return world.lookup("creator");
  },
  SERVICE_BUSY: async (world) => {
    const { social } = world.sandbox;
    social.faults.add({ then: "hang" });
    void world.lookup("artist001").catch(() => undefined);
    await expect.poll(() => social.calls.length).toBe(1);
    return world.lookup("creator");
  },
  LOOKUP_FAILED: (world) => {
    world.sandbox.rpc.faults.add({ then: { status: 503, body: "" } });
    return world.lookup("creator");
  },
  INVALID_SOCIAL_ID: (world) => world.collect("creator"),
  NOTHING_TO_COLLECT: (world) => world.collect(world.account("newcomer").id),
  INSUFFICIENT_FUNDS: (world) => {
    const { feePayer } = readConfig(world.sandbox.env).secrets;
    world.sandbox.chain.setBalance(feePayer.publicKey.toBase58(), 0n);
    return collect(world);
  },
  COLLECT_FAILED: (world) => {
    world.sandbox.rpc.faults.add({ then: { status: 503, body: "" } });
    return collect(world);
  },
  RATE_LIMITED: async (world) => {
    const from = { "x-forwarded-for": "192.0.2.1" };
    await world.lookup("!", from);
    return world.lookup("!", from);
  },
  NOT_FOUND: (world) => world.request("/wallets"),
  METHOD_NOT_ALLOWED: (world) => world.request("/collect"),
};

describe("over HTTP", () => {
  const worlds: World[] = [];
  const newWorld = async () => {
    const world = await startWorld({ RATE_LIMIT_MAX: "1", SOCIAL_CONCURRENCY: "1", SOCIAL_QUEUE_MAX: "0" });
    worlds.push(world);
    return world;
  };
  let enumValues: string[];
  beforeAll(async () => {
    const { body } = await (
      await newWorld()
    ).graphql('{ __type(name: "ErrorCode") { enumValues { name description } } }');
    enumValues = body.data.__type.enumValues.map(({ name }: { name: string }) => name);
  });
  afterAll(() => Promise.all(worlds.map((world) => world.close())));

  it("GraphQL's ErrorCode lists every code of the table", () => {
    expect(enumValues).toEqual(Object.keys(ERROR_CODES));
  });

  it.each(Object.keys(SCENARIOS) as ErrorCode[])(
    "%s is answered with the table's status and body",
    async (code) => {
      const { status, headers, body } = await SCENARIOS[code](await newWorld());
      expect([status, body.error]).toEqual([rowOf(code).status, code]);
      expect(body.message).toMatch(/^\S.{10,}\S$/);
      const { retryAfterSeconds } = rowOf(code);
      if (retryAfterSeconds !== undefined) expect(headers.get("retry-after")).toBe(String(retryAfterSeconds));
      if (status === 429) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    },
  );
});

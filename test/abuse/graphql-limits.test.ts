import { getNamedType, isObjectType, type GraphQLNamedType } from "graphql";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { schema } from "../../src/schema/schema.ts";
import { newMint } from "../support/new-mint.ts";
import { withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ RATE_LIMIT_MAX: "1000000" });

const times = (count: number, write: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => write(i)).join(" ");
const artists = (count: number) =>
  Array.from({ length: count }, (_, i) => `artist${String(i + 1).padStart(3, "0")}`);
const wallets = (count: number, fields: string) =>
  times(count, (i) => `w${i}: wallet(handle: "${artists(200)[i]}") { ${fields} }`);
const collects = (count: number, fields = "success") =>
  `mutation { ${times(count, (i) => `c${i}: collect(socialId: "${world.account(artists(200)[i]!).id}") { ${fields} }`)} }`;

/** Every field of a type, but those with limits of their own. */
function everyFieldOf(type: GraphQLNamedType | undefined): string {
  if (!isObjectType(type)) return "";
  const fields = Object.values(type.getFields()).filter(
    ({ name }) => !["history", "coins", "coinsSeen"].includes(name),
  );
  const written = fields.map((field) => `${field.name} ${everyFieldOf(getNamedType(field.type))}`);
  return `{ ${written.join(" ")} __typename }`;
}
const MANY = "mutation ($c: [CollectInput!]!) { collectMany(collects: $c) { success } }";

interface Refused {
  readonly name: string;
  readonly operationName?: string;
  readonly query: string | (() => string);
  readonly variables?: Record<string, unknown>;
  readonly message: RegExp;
}

const tooMany = (max: number, words: string, per = "operation") =>
  new RegExp(`^Too many ${words}: the maximum is ${max} per ${per}\\.$`);
const tooManyInText = (max: number, words: string) => tooMany(max, words, "document");
const MAX_FIELDS = 2_300;
const TOO_MANY_MERGED = tooManyInText(30_000, "merged fields");

const TOO_MANY_VALUES = /^Too many values in `variables`: the maximum is 1000\./;
const TOO_MANY_MEMBERS = /^Too many members of an object in `variables`: the maximum is 5\.$/;
const membersOf = (count: number, value: unknown = 1) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`a${i}`, value]));
const nestedObjects = (depth: number): object =>
  membersOf(5, depth > 1 ? nestedObjects(depth - 1) : 1);

const REFUSED: readonly Refused[] = [
  // Limits on the text, checked before parsing.
  { name: "tokens", query: `{ ${"a ".repeat(5_999)} }`, message: tooManyInText(6_000, "tokens") },
  {
    name: "operations",
    query: times(1_000, (i) => `query A${i} { __typename }`),
    message: tooManyInText(60, "operations and fragments"),
  },
  {
    name: "characters",
    query: `{ __typename } ${"#\n".repeat(33_000)}`,
    message: tooManyInText(65_536, "characters"),
  },
  {
    name: "characters of an alias",
    query: `{ ${"a".repeat(129)}: __typename }`,
    message: tooManyInText(128, "characters in a name or a value"),
  },
  {
    name: "nested fields",
    query: "{a".repeat(20_000),
    message: tooManyInText(20, "levels of brackets"),
  },
  {
    name: "directives",
    query: `{ __typename ${"@skip(if: false) ".repeat(201)} }`,
    message: tooManyInText(200, "directives"),
  },
  // Limits on the operation, checked before validation.
  {
    name: "aliases of __typename",
    query: `{ ${times(101, (i) => `a${i}: __typename`)} }`,
    message: tooMany(100, "root fields"),
  },
  {
    name: "one repeated field",
    query: `{ ${"__typename ".repeat(500)} }`,
    message: TOO_MANY_MERGED,
  },
  {
    name: "wallets in aliases",
    query: () => `{ ${wallets(101, "address")} }`,
    message: tooMany(100, "wallets"),
  },
  { name: "collects", query: () => collects(11), message: tooMany(10, "collects") },
  {
    name: "fields",
    query: () => `{ ${wallets(100, "handle id socialId address ".repeat(6))} }`,
    message: tooMany(MAX_FIELDS, "fields"),
  },
  {
    name: "fields of one fragment",
    query: () => `{ ${wallets(100, "...F")} } fragment F on Wallet { ${"handle ".repeat(24)} }`,
    message: TOO_MANY_MERGED,
  },
  {
    name: "aliases of one field",
    query: `{ wallet(handle: "creator") { ${times(201, (i) => `a${i}: handle`)} } }`,
    message: tooMany(200, "aliases"),
  },
  {
    name: "levels in fragments",
    query: `{ wallet(handle: "creator") { ...F0 } } ${times(26, (i) => `fragment F${i} on Wallet { balance { ...F${i + 1} } }`)} fragment F26 on Wallet { handle }`,
    message: tooMany(25, "levels of nested fields"),
  },
  {
    name: "fragments that spread each other four times",
    query: `{ wallet(handle: "creator") { ...F0 } } ${times(40, (i) => `fragment F${i} on Wallet { ${`...F${i + 1} `.repeat(4)} }`)} fragment F40 on Wallet { handle }`,
    message: tooMany(3_000, "fragments"),
  },
  {
    name: "introspection",
    query: `{ ${times(21, (i) => `s${i}: __schema { types { ${"name ".repeat(26)} } }`)} }`,
    message: tooMany(500, "introspection fields"),
  },
  // Limits on operations that do not run, but are validated.
  {
    name: "wallets in another operation",
    operationName: "Q",
    query: `query Q { __typename } query Other { ${times(330, () => 'wallet(handle: "creator") { address }')} }`,
    message: TOO_MANY_MERGED,
  },
  // Limits that depend on the variables.
  {
    name: "wallets in a list that is used twice",
    query:
      "query ($a: [String!]!) { ...F b: wallets(handles: $a) { address } } fragment F on Query { a: wallets(handles: $a) { address } }",
    variables: { a: artists(51) },
    message: tooMany(100, "wallets"),
  },
  {
    name: "fields of a list in a variable",
    query: `query ($a: [String!]!) { wallets(handles: $a) { ${"handle ".repeat(24)} } }`,
    variables: { a: artists(100) },
    message: tooMany(MAX_FIELDS, "fields"),
  },
  {
    name: "wallets in a variable named __proto__",
    query: "query ($__proto__: [String!]!) { wallets(handles: $__proto__) { address } }",
    variables: JSON.parse(`{"__proto__": ${JSON.stringify(artists(101))}}`),
    message: tooMany(100, "wallets"),
  },
  {
    name: "members of an object, one more than allowed",
    query: MANY,
    variables: { c: { socialId: "1", ...membersOf(5) } },
    message: TOO_MANY_MEMBERS,
  },
  {
    name: "values in nested objects",
    query: MANY,
    variables: { c: nestedObjects(5) },
    message: TOO_MANY_VALUES,
  },
];

describe("an operation above a limit is refused with 400 and the limit, without upstream calls:", () => {
  beforeEach(() => {
    world.forgetCalls();
  });
  afterEach(() => {
    expect([world.sandbox.social.calls, world.chainCalls()]).toEqual([[], []]);
  });

  it.each(REFUSED)("$name", async ({ query, variables, operationName, message }) => {
    const text = typeof query === "string" ? query : query();
    // Twice: a refused operation is not cached.
    for (let i = 0; i < 2; i++) {
      const { status, body } = await world.post("/graphql", {
        query: text,
        variables,
        operationName,
      });
      expect({ status, body }).toEqual({
        status: 400,
        body: {
          errors: [
            {
              message: expect.stringMatching(message),
              extensions: { code: "BAD_REQUEST", moved: "no" },
            },
          ],
        },
      });
    }
  });

  it("a body that is too large, with or without a Content-Length", async () => {
    const body = JSON.stringify({ query: `{ __typename } #${"#".repeat(100_000)}` });
    const headers = { "content-type": "application/json" };
    const stream = () => new Blob([body]).stream();
    for (const init of [{ body }, { body: stream(), duplex: "half" as const }]) {
      const refused = await world.request("/graphql", { method: "POST", headers, ...init });
      expect([refused.status, refused.body]).toEqual([
        413,
        {
          errors: [
            {
              message: "The body is too large: the maximum is 100000 bytes.",
              extensions: { code: "BAD_REQUEST", moved: "no" },
            },
          ],
        },
      ]);
    }
  });

  it("a list in a variable of a cached operation", async () => {
    const query = "query Known($handles: [String!]!) { wallets(handles: $handles) { address } }";
    for (let i = 0; i < 3; i++)
      expect((await world.graphql(query, { handles: [] })).body).toEqual({ data: { wallets: [] } });
    const { status, body } = await world.graphql(query, { handles: artists(101) });
    expect([status, body.errors[0].message]).toEqual([
      400,
      expect.stringMatching(tooMany(100, "wallets")),
    ]);
  });

  it("a fragment that spreads itself, as invalid", async () => {
    const { body } = await world.graphql(
      '{ wallet(handle: "creator") { ...F } } fragment F on Wallet { ...G } fragment G on Wallet { ...F handle }',
    );
    expect(body).toEqual({
      errors: [expect.objectContaining({ message: expect.stringContaining("within itself") })],
    });
  });
});

describe("an ordinary request passes:", () => {
  it("a hundred aliased wallets with all their fields", async () => {
    const fields = everyFieldOf(schema.getType("Wallet")).slice(1, -1);
    const { status, body } = await world.graphql(`{ ${wallets(100, fields)} }`);
    expect([status, body.errors]).toEqual([200, undefined]);
    expect(Object.keys(body.data)).toHaveLength(100);
    expect(body.data.w99).toMatchObject({
      handle: "artist100",
      balance: { vault: expect.any(String) },
    });
  });

  it("a hundred entries to collect in one variable, with a coin each", async () => {
    const c = Array.from({ length: 100 }, (_, i) => ({
      socialId: String(10 ** 6 + i),
      mints: [newMint()],
    }));
    const { status, body } = await world.graphql(MANY, { c });
    expect([status, body.errors, body.data.collectMany.length]).toEqual([200, undefined, 100]);
  });
});

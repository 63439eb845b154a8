import { hash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import {
  buildSchema,
  execute,
  getOperationAST,
  isListType,
  isNonNullType,
  isObjectType,
  OperationTypeNode,
  parse,
  validate,
  type ExecutionResult,
  type GraphQLObjectType,
  type GraphQLOutputType,
} from "graphql";
import { expect, it } from "vitest";
import { createPrepareRun } from "../../src/graphql/run-operation.ts";
import type { Context } from "../../src/resolvers/use-cases.ts";
import { fuzz } from "../support/fuzz/fuzz.ts";
import { operations } from "../support/fuzz/documents.ts";

/** Has every kind of type, nullable and not, and no cycle. The generator knows the names of the arguments. */
const schema = buildSchema(`
  interface Node { id: ID! }
  enum Kind { A B }
  type Wallet implements Node {
    id: ID!
    handle: String
    address(handle: String = "x", first: Int): String!
    kind: Kind
    balance(mints: [String!]): Balance
    strictBalance: Balance!
    balances(handles: [String!]!): [Balance]
    strictBalances: [Balance!]!
    table: [[Int!]]
  }
  type Balance { vault: String! pda: Int total: Float! flag(flag: Boolean! = true): Boolean }
  type Query { wallet(handle: String): Wallet wallets: [Wallet!] strict: Wallet! node(id: ID!): Node text: String }
  type Mutation { collect(socialId: String!): Wallet strictCollect(first: Int): Wallet! text: String }
`);

type Outcome = (create: () => unknown) => unknown;
const usual: Outcome[] = [
  (create) => create(),
  (create) => Promise.resolve().then(create),
  async (create) => {
    await setImmediate();
    return create();
  },
];
const OUTCOMES: Outcome[] = [
  ...[...usual, ...usual, ...usual, ...usual],
  () => null,
  () => Promise.resolve(undefined),
  () => {
    throw new Error("failed");
  },
  () => new Error("returned"),
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- resolvers may
  () => Promise.reject("a text"),
  () => Promise.reject(new Error("rejected")),
];

/** A number that depends on nothing else, so that all runs have the same outcomes. */
const seedOf = (...parts: readonly unknown[]) =>
  parseInt(hash("sha256", JSON.stringify(parts)).slice(0, 8), 16);

/** A value of the type, or a failure. */
function valueOf(type: GraphQLOutputType, seed: number): unknown {
  const plain = isNonNullType(type) ? type.ofType : type;
  const outcome = OUTCOMES[seed % OUTCOMES.length]!;
  if (isListType(plain)) return outcome(() => listOf(plain.ofType, seed));
  const scalars: Record<string, unknown> = { Int: seed % 9, Float: 0.5, Boolean: true, Kind: "B" };
  const name = String(plain);
  // Some leaves have a value that their type cannot have.
  const leaf = seed % 31 === 0 ? {} : (scalars[name] ?? String(seed));
  return outcome(() => (isObjectType(plain) || name === "Node" ? { seed } : leaf));
}

function listOf(type: GraphQLOutputType, seed: number): unknown[] {
  const seeds = Array.from({ length: seed % 4 }, (_, i) => seedOf(seed, i));
  // After an item that must not be null has failed at once, graphql-js handles no rejections of
  // earlier ones.
  return isNonNullType(type)
    ? seeds.map((each) => Promise.resolve().then(() => valueOf(type, each)))
    : seeds.map((each) => valueOrError(type, each));
}

function valueOrError(type: GraphQLOutputType, seed: number): unknown {
  try {
    return valueOf(type, seed);
  } catch (error) {
    return error;
  }
}

for (const type of Object.values(schema.getTypeMap()))
  if (isObjectType(type) && !type.name.startsWith("__"))
    for (const field of Object.values(type.getFields()))
      field.resolve = (source: { seed: number } | undefined, args: object) =>
        valueOf(field.type, seedOf(source?.seed, field.name, args));
Object.assign(schema.getType("Node")!, { resolveType: () => "Wallet" });

const prepareRun = createPrepareRun(schema);

/**
 * The answer's text, and its errors. An error of a field that must not be null is left out, because
 * it may be any of several that make the same object null: its object's path is kept.
 */
function comparable({ data, errors }: ExecutionResult) {
  const shown = errors?.map(({ message, path, nodes }) => {
    if (!path) return { message, path, nodes };
    let value: any = data;
    const reached: (string | number)[] = [];
    for (const key of path) {
      if (value === null || value === undefined) return { nulled: reached };
      value = value[key];
      reached.push(key);
    }
    return { message, path, nodes };
  });
  const texts = new Set(shown?.map((error) => JSON.stringify(error)).sort());
  return { data: JSON.stringify(data), errors: [...texts] };
}

async function compare(query: string, variables: unknown, operationName?: unknown) {
  const document = parse(query, { noLocation: true });
  const name = typeof operationName === "string" ? operationName : undefined;
  const operation = getOperationAST(document, name);
  if (
    !operation ||
    operation.operation === OperationTypeNode.SUBSCRIPTION ||
    validate(schema, document).length > 0
  )
    return undefined;
  const variableValues = Object(variables) as Record<string, unknown>;
  const expected = await execute({
    schema,
    document,
    variableValues,
    operationName: name,
    hideSuggestions: true,
  });
  const { run, plan } = prepareRun(document, operation);
  const first = await run({} as Context, variableValues);
  plan();
  for (const result of [first, await run({} as Context, variableValues)])
    expect(comparable(result)).toEqual(comparable(expected));
  return expected;
}

const seen = { valid: 0, data: 0, errors: 0, nulls: 0, invalidVariables: 0 };
fuzz("any operation on a schema of failing resolvers gets the answer of graphql-js", {
  share: 0.3,
  cases: operations(schema),
  async check({ query, variables, operationName }) {
    let result: ExecutionResult | undefined;
    try {
      result = await compare(query, variables, operationName);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("Syntax Error")) return;
      throw error;
    }
    if (!result) return;
    seen.valid++;
    if (result.data === undefined) seen.invalidVariables++;
    else if (result.data === null) seen.nulls++;
    else seen.data++;
    if (result.errors) seen.errors++;
  },
});

it("the cases reach every kind of answer", () => {
  expect(Object.values(seen).every((count) => count > 0)).toBe(true);
});

it("an answer has no errors of fields in an object that another error has made null", async () => {
  const small = buildSchema("type Query { a: A } type A { late: String strict: String! }");
  const resolve = {
    a: () => ({}),
    late: () => Promise.reject(new Error("late")),
    strict() {
      throw new Error("strict");
    },
  };
  for (const type of ["Query", "A"])
    for (const field of Object.values((small.getType(type) as GraphQLObjectType).getFields()))
      field.resolve = resolve[field.name as keyof typeof resolve];
  const document = parse("{ a { late strict } }");
  const { run } = createPrepareRun(small)(document, getOperationAST(document)!);
  const { data, errors } = await run({} as Context, {});
  expect(JSON.stringify(data)).toBe('{"a":null}');
  expect(errors).toMatchObject([{ message: "strict", path: ["a", "strict"] }]);
});

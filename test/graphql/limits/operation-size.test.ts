import { getOperationAST, isObjectType, parse, type DocumentNode } from "graphql";
import { expect, it } from "vitest";
import { measureOperation } from "../../../src/graphql/limits/operation-size.ts";
import { FIELD_COSTS } from "../../../src/schema/field-costs.ts";
import { schema } from "../../../src/schema/schema.ts";
import { fragmentsOf } from "../../../src/schema/selected-fields.ts";

function measure(document: DocumentNode, variables?: Record<string, unknown>, name?: string) {
  const operation = getOperationAST(document, name)!;
  return measureOperation(fragmentsOf(document), operation, variables);
}

function costOf(
  document: DocumentNode,
  variables?: Record<string, unknown>,
  name?: string,
): number {
  return measure(document, variables, name).requests;
}

it.each([
  ['{ a: wallet(handle: "x") { address } b: wallet(handle: "y") { address } }', 1],
  ['mutation { collect(socialId: "1") { success } }', 1],
  ['mutation { a: collect(socialId: "1") { success } b: collect(socialId: "2") { success } }', 2],
  ["mutation { __typename }", 1],
  ['mutation { __typename a: collect(socialId: "1") { success } }', 1],
  ['mutation { a: collect(socialId: "1") { success } a: collect(socialId: "1") { collected } }', 2],
  [
    'mutation { ...F ... { b: collect(socialId: "2") { success } } } fragment F on Mutation { a: collect(socialId: "1") { success } ...G } fragment G on Mutation { c: collect(socialId: "3") { success } }',
    3,
  ],
  [
    'mutation { a: collect(socialId: "1") @skip(if: true) { success } b: collect(socialId: "2") { success } }',
    2,
  ],
  [
    'mutation { collectMany(collects: [{socialId: "1"}, {socialId: "2"}, {socialId: "2"}]) { success } }',
    3,
  ],
  [
    'mutation { collectMany(collects: {socialId: "1"}) { success } a: collect(socialId: "2") { success } }',
    2,
  ],
  ["mutation { collectMany(collects: []) { success } }", 1],
  [
    'mutation ($c: [CollectInput!]! = [{socialId: "1"}, {socialId: "2"}]) { collectMany(collects: $c) { success } }',
    2,
  ],
])("%s costs %i", (text, cost) => {
  const document = parse(text);
  expect(costOf(document)).toBe(cost);
});

it("`node` costs what `walletById` costs, in fragments on its interface and on its type", () => {
  const MINTS = JSON.stringify(Array.from({ length: 10 }, (_, i) => `m${i}`));
  const fields = `balance(mints: ${MINTS}) { vault } history(first: 60) { nodes { kind } } more: coins(mints: ["n"]) { mint }`;
  const byId = `{ walletById(socialId: "1") { id ${fields} } }`;
  const countsOf = (text: string) => {
    const document = parse(text);
    const { counts, requests } = measure(document);
    return { ...counts, spreads: 0, requests };
  };
  expect(countsOf(byId).requests).toBe(4);
  for (const text of [
    `{ node(id: "1") { id ... on Wallet { ${fields} } } }`,
    `{ node(id: "1") { ... on Node { id ... on Wallet { ${fields} } } } }`,
    `{ ... on Query { node(id: "1") { ...N } } } fragment N on Node { id ...W } fragment W on Wallet { ...{ ${fields} } }`,
    `{ walletById(socialId: "1") { ... on Node { id ... on Wallet { ${fields} } } } }`,
  ])
    expect(countsOf(text)).toEqual(countsOf(byId));
});

it.each([
  [100, 0, 0, 1],
  [1, 1, 97, 1],
  [1, 1, 98, 2],
  [100, 1, 0, 3],
  [8, 9, 0, 1],
  [9, 9, 0, 2],
  [4, 10, 0, 1],
  [4, 10, 1, 2],
  [4, 19, 0, 1],
])(
  "a query of %i wallets with %i coins each, and %i without, costs %i",
  (count, coins, others, cost) => {
    const document = parse(`query ($a: [String!]!, $m: [String!], $n: [String!]!, $b: [String!]!) {
    a: wallets(handles: $a) { ...F balance(mints: $m) { vault } }
    b: walletsById(socialIds: $b) { balance { vault } }
  } fragment F on Wallet { coins(mints: $n) { mint } more: coins(mints: $n) { mint } }`);
    const mints = Array.from({ length: coins }, (_, i) => `m${i}`);
    const variables = {
      ...{ a: new Array(count).fill("x"), b: new Array(others).fill("1") },
      ...{ m: mints.slice(0, 10), n: mints.slice(9) },
    };
    expect(costOf(document, variables)).toBe(cost);
  },
);

it.each([
  ['{ wallets(handles: ["x", "y"]) { address } }', 1],
  [
    '{ wallets(handles: ["x", "y"]) { balance { vault } history(first: 31) { nodes { kind } } } }',
    5,
  ],
  ['{ walletById(socialId: "1") { history { nodes { kind } } } }', 2],
  ['{ walletById(socialId: "1") { history(first: 30) { nodes { kind } } } }', 2],
  ['{ walletById(socialId: "1") { history(first: 100) { nodes { kind } } } }', 5],
  [`{ ${"x: wallets(handles: $a) { balance(mints: $m) { vault } } ".repeat(2)} }`, 2],
  [
    `mutation { collect(socialId: "1") { wallet { ...F } } a: collect(socialId: "1") { wallet { ...F } } } `,
    2,
  ],
  [`subscription { wallet(handle: "x") { ...F } }`, 1],
])("%s costs %i with its reads", (text, cost) => {
  const document = parse(
    `${text} fragment F on Wallet { balance(mints: $m) { vault } coins(mints: $n) { mint } }`,
  );
  const mints = (letter: string) => Array.from({ length: 10 }, (_, i) => `${letter}${i}`);
  expect(costOf(document, { a: new Array(4).fill("x"), m: mints("m"), n: mints("n") })).toBe(cost);
});

it.each([
  [{ c: [{ socialId: "1" }, {}, null] }, 6],
  [{ c: { socialId: "1" } }, 2],
  [{}, 1],
  [undefined, 1],
])("counts the entries in the variables %j", (variables, cost) => {
  const document = parse(
    "mutation ($c: [CollectInput!]!) { a: collectMany(collects: $c) { success } b: collectMany(collects: $c) { success } }",
  );
  expect(costOf(document, variables)).toBe(cost);
});

it.each([
  [undefined, 4],
  [{ m: ["x"] }, 3],
  [{ m: ["x"], c: [{ mints: ["a", "b"] }, { mints: "a" }] }, 4],
  [{ m: null, c: null }, 0],
])("counts the mints in variables, in lists and objects, with defaults: %j", (variables, mints) => {
  const document =
    parse(`mutation ($m: [String!] = ["a", "b"], $c: [CollectInput!] = [{ socialId: "2", mints: ["a", "b"] }]) {
    collectMany(collects: [{ socialId: "1", mints: $m }]) { success } a: collectMany(collects: $c) { success }
  }`);
  expect(measure(document, variables).counts.mints).toBe(mints);
});

it("counts only the operation that runs", () => {
  const document = parse(
    'query A { __typename } mutation B { a: collect(socialId: "1") { success } b: collect(socialId: "2") { success } }',
  );
  expect(costOf(document, {}, "A")).toBe(1);
  expect(costOf(document, {}, "B")).toBe(2);
});

it("a transfer's `node` is no wallet", () => {
  const { counts } = measure(
    parse('{ node(id: "1") { ... on Wallet { history { edges { node { kind } } } } } }'),
  );
  expect([counts.wallets, counts.transfers]).toEqual([1, 10]);
});

it("every name with a cost is that of a field, with the arguments that count", () => {
  const types = Object.values(schema.getTypeMap()).filter((type) => isObjectType(type));
  const isRoot = ({ name }: { name: string }) =>
    ["Query", "Mutation", "Subscription"].includes(name);
  for (const place of ["root", "nested"] as const)
    for (const [name, { mintsIn, perItemOf, transfersOf }] of FIELD_COSTS[place]) {
      const fields = types
        .filter((type) => isRoot(type) === (place === "root"))
        .flatMap((type) => type.getFields()[name] ?? []);
      expect([name, fields.length]).not.toEqual([name, 0]);
      for (const { args } of fields)
        expect(args.map((argument) => argument.name)).toEqual(
          expect.arrayContaining([perItemOf ?? mintsIn, transfersOf].filter(Boolean)),
        );
    }
});

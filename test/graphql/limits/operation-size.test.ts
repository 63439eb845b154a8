import { getOperationAST, parse, type DocumentNode } from "graphql";
import { expect, it } from "vitest";
import { measureOperation } from "../../../src/graphql/limits/operation-size.ts";
import { schema } from "../../../src/schema/schema.ts";

function costOf(document: DocumentNode, variables?: Record<string, unknown>, name?: string): number {
  const operation = getOperationAST(document, name)!;
  return measureOperation(schema, document, operation, variables).requests;
}

it.each([
  ['{ a: wallet(handle: "x") { address } b: wallet(handle: "y") { address } }', 1],
  ['mutation { collect(socialId: "1") { success } }', 1],
  ['mutation { a: collect(socialId: "1") { success } b: collect(socialId: "2") { success } }', 2],
  ["mutation { __typename }", 1],
  ['mutation { __typename a: collect(socialId: "1") { success } }', 1],
  ['mutation { a: collect(socialId: "1") { success } a: collect(socialId: "1") { collected } }', 1],
  [
    'mutation { ...F ... { b: collect(socialId: "2") { success } } } fragment F on Mutation { a: collect(socialId: "1") { success } ...G } fragment G on Mutation { c: collect(socialId: "3") { success } }',
    3,
  ],
  [
    'mutation { a: collect(socialId: "1") @skip(if: true) { success } b: collect(socialId: "2") { success } }',
    2,
  ],
  ['mutation { collectMany(collects: [{socialId: "1"}, {socialId: "2"}, {socialId: "2"}]) { success } }', 3],
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

it("counts only the operation that runs", () => {
  const document = parse(
    'query A { __typename } mutation B { a: collect(socialId: "1") { success } b: collect(socialId: "2") { success } }',
  );
  expect(costOf(document, {}, "A")).toBe(1);
  expect(costOf(document, {}, "B")).toBe(2);
});

it("visits each fragment once, even when fragments spread each other many times", () => {
  const fragments = Array.from(
    { length: 60 },
    (_, i) => `fragment F${i} on Mutation { ...F${i + 1} ...F${i + 1} }`,
  );
  const document = parse(
    `mutation { ...F0 } ${fragments.join(" ")} fragment F60 on Mutation { collect(socialId: "1") { success } }`,
  );
  expect(costOf(document)).toBe(1);
});

import fc from "fast-check";
import {
  buildSchema,
  assertInterfaceType,
  isAbstractType,
  isInterfaceType,
  OverlappingFieldsCanBeMergedRule,
  parse,
  validate,
} from "graphql";
import { expect, it } from "vitest";
import { sameResponseNameRule } from "../../../src/graphql/limits/same-response-name.ts";
import { schema } from "../../../src/schema/schema.ts";

const SMALL = buildSchema(
  `input I { x: Int y: Int }
   interface N { a(v: I, w: Int): N c: Int }
   type Query implements N { a(v: I, w: Int): N b(w: Int): Query c: Int }`,
);
const RULE = sameResponseNameRule(2_000);

/**
 * Selection sets whose fields with one response name are mostly the same, so that about half of the
 * documents are valid.
 */
const { set } = fc.letrec<{ set: string; selection: string }>((tie) => ({
  set: fc
    .array(tie("selection"), { minLength: 1, maxLength: 3 })
    .map((selections) => `{ ${selections.join(" ")} }`),
  selection: fc.oneof(
    { maxDepth: 3 },
    { weight: 30, arbitrary: fc.constantFrom("c", "d: c", "...F", "...G") },
    {
      weight: 3,
      arbitrary: fc.constantFrom("d: b { c }", "x: a { c }", "x: a(v: { x: 2 }) { c }"),
    },
    { weight: 30, arbitrary: tie("set").map((nested) => `a ${nested}`) },
    {
      weight: 10,
      arbitrary: tie("set").map((nested) => `x: a(v: { x: 1, y: 2 }, w: 1) ${nested}`),
    },
    {
      weight: 10,
      arbitrary: tie("set").map((nested) => `x: a(w: 1, v: { y: 2, x: 1 }) ${nested}`),
    },
    { weight: 10, arbitrary: tie("set").map((nested) => `... on Query ${nested}`) },
    { weight: 10, arbitrary: tie("set").map((nested) => `... on N ${nested}`) },
  ),
}));
/** Without cycles of fragments, and without unused ones: other rules refuse them. */
const type = fc.constantFrom("Query", "N");
const documents = fc.tuple(set, set, set, type, type).map(([query, f, g, ofF, ofG]) => {
  const [inF, inG] = [f.replaceAll("...F", "c"), g.replaceAll(/\.\.\.[FG]/g, "c")];
  const used = "query Used { f: a { ...F } g: a { ...G } }";
  return parse(`query Q ${query} ${used} fragment F on ${ofF} ${inF} fragment G on ${ofG} ${inG}`);
});

it("accepts and refuses the same documents as graphql-js's rule", () => {
  const refused = { yes: 0, no: 0 };
  fc.assert(
    fc.property(documents, (document) => {
      const theirs = validate(SMALL, document, [OverlappingFieldsCanBeMergedRule]).length > 0;
      expect(validate(SMALL, document, [RULE]).length > 0).toBe(theirs);
      refused[theirs ? "yes" : "no"]++;
    }),
    { numRuns: 500, seed: 1 },
  );
  expect(Math.min(refused.yes, refused.no)).toBeGreaterThan(50);
});

it.each([
  [
    "{ a { c } a(w: 1) { c } }",
    'Fields with the response name "a" conflict: their arguments differ. Use aliases.',
  ],
  [
    "{ a { x: c x: b { c } } }",
    'Fields with the response name "x" conflict: one selects `c`, another `b`. Use aliases.',
  ],
])("says what differs in %s", (text, message) => {
  expect(validate(SMALL, parse(text), [RULE])).toMatchObject([{ message }]);
});

it("ends for fragments that spread themselves", () => {
  const document = parse("{ ...F } fragment F on Query { a { ...F } b { ...F } c: a { ...F } }");
  expect(validate(SMALL, document, [RULE])).toEqual([]);
});

it("each abstract type of the schema is an interface with one type, which has the same types of fields: the rule supports no other", () => {
  for (const type of Object.values(schema.getTypeMap()).filter(isAbstractType)) {
    const [implementation, ...others] = schema.getPossibleTypes(type);
    expect([isInterfaceType(type), others]).toEqual([true, []]);
    for (const { name, type: fieldType } of Object.values(assertInterfaceType(type).getFields()))
      expect(String(implementation!.getFields()[name]!.type)).toBe(String(fieldType));
  }
});

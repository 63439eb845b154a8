import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { bytesOfPlans, createDocuments } from "../../src/graphql/documents.ts";
import { schema } from "../../src/schema/schema.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapUsed(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const COPIES = 20;
const ROUNDS = 3;
type Document = ReturnType<ReturnType<typeof createDocuments>["parse"]>;

const times = (count: number, format: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => format(i)).join(" ");

/** Documents that take much memory for their text, and large ones. */
const DOCUMENTS: Readonly<Record<string, string>> = {
  fields: `{ ${times(100, (i) => `w${i}: walletById(socialId: "${i}") { ${"socialId ".repeat(18)} }`)} }`,
  arguments: `{ ${times(320, (i) => `w${i}: a(b: ${i}, c: $d)`)} }`,
  "a list": `{ a(b: [${"1 ".repeat(3_900)}]) }`,
  objects: `{ a(b: [${"{a:1}".repeat(700)}]) }`,
  "inline fragments": `{ a ${"... {a}".repeat(950)} }`,
  fragments: `{ a } ${times(550, (i) => `fragment F${i} on Q {a}`)}`,
  directives: `{ ${"a @a ".repeat(199)} ${"a ".repeat(3_000)} }`,
  variables: `query (${times(950, (i) => `$v${i}: A`)}) {a}`,
  "nested fields": `{ ${"a{b}".repeat(980)} }`,
  spreads: `{ ${"...A ".repeat(1_900)} }`,
  strings: `{ ${times(200, () => `a(b: "${"\\u0041".repeat(40)}")`)} }`,
  "long names": `{ ${times(440, (i) => `${"x".repeat(120)}${i}: __typename`)} }`,
  "a comment": `{ a } #${"x".repeat(60_000)}`,
  lines: `{ ${"\n".repeat(60_000)} a }`,
  "two-byte text": `{ a } #${"é→".repeat(15_000)}`,
};

/** Valid documents whose operations have large plans. */
const PLANNED: Readonly<Record<string, string>> = {
  fields: DOCUMENTS.fields!,
  "long names": DOCUMENTS["long names"]!,
  "different fields": `{ ${times(60, (i) => `w${i}: walletById(socialId: "${i}") { id address balance { ${times(20, (j) => `a${j}: vault`)} } }`)} }`,
  "merged fragments": `{ ${times(100, (i) => `w${i}: walletById(socialId: "${i}") { ...F ...G }`)} }
    fragment F on Wallet { id address balance { vault pda total } derivation { bump seeds } }
    fragment G on Wallet { id address balance { vault pda total } derivation { bump seeds } }`,
  "lists of arguments": `{ wallets(handles: [${times(2_000, (i) => `"n${i}"`)}]) { id } }`,
  "many operations": times(
    10,
    (j) =>
      `query Q${j} { ${times(40, (i) => `w${i}: walletById(socialId: "${i}") { id address }`)} }`,
  ),
  variables: `query ($i: String!) { ${times(100, (i) => `w${i}: walletById(socialId: $i) { id }`)} }`,
  directives: `{ ${times(100, (i) => `w${i}: walletById(socialId: "1") @skip(if: false) { id }`)} }`,
};

/** The texts of requests are no parts of other strings. */
const receive = (text: string): string => Buffer.from(text).toString();

/**
 * Keeps copies of a document, and returns how much more memory they take than is counted. The least
 * of some rounds, because the test runner allocates memory too.
 */
function uncountedBytes(text: string, countOf: (document: Document) => number): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const documents = createDocuments(schema);
    const kept: unknown[] = [countOf(documents.parse(text))];
    const before = heapUsed();
    let counted = 0;
    for (let i = 0; i < COPIES; i++) {
      const received = receive(`${text} #${i}`);
      const document = documents.parse(received);
      counted += countOf(document);
      kept.push(received, document);
    }
    const taken = heapUsed() - before;
    expect(kept).toHaveLength(1 + 2 * COPIES);
    return taken - counted;
  });
  return Math.min(...rounds);
}

describe("the cache of documents", () => {
  it.each(Object.entries(PLANNED))("counts at least the memory of %s with plans", (_name, text) => {
    const countOf = (document: Document) => document.bytes + bytesOfPlans(document);
    expect(uncountedBytes(text, countOf)).toBeLessThanOrEqual(0);
  });

  it.each(Object.entries(DOCUMENTS))("counts at least the memory of %s", (_name, text) => {
    const countOf = (document: Document) => {
      for (const operation of document.operations.values()) operation.measure({});
      return document.bytes;
    };
    expect(uncountedBytes(text, countOf)).toBeLessThanOrEqual(0);
  });

  it("holds no more than its limit, and also documents of 60 kB", () => {
    const documents = createDocuments(schema);
    const before = heapUsed();
    let last = "";
    for (let i = 0; i < 300; i++) {
      for (const text of [DOCUMENTS.fields!, DOCUMENTS["long names"]!]) {
        last = receive(`${text} #${i}`);
        documents.add(documents.parse(last));
      }
    }
    expect(last.length).toBeGreaterThan(50_000);
    expect(documents.cached(last)).toBeDefined();
    expect(heapUsed() - before).toBeLessThan(50_000_000);
  });
});

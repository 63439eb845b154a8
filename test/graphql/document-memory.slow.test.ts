import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDocuments } from "../../src/graphql/documents.ts";
import { atOnce, from } from "../support/client.ts";
import { openEventStream } from "../support/event-stream.ts";
import { startWorld } from "../support/world.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapUsed(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const times = (count: number, format: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => format(i)).join(" ");

/** Documents that take much memory for their text, and large ones. */
const DOCUMENTS: Readonly<Record<string, string>> = {
  fields: `{ ${times(100, (i) => `w${i}: walletById(socialId: "${i}") { ${times(10, (j) => `a${j}: id`)} }`)} }`,
  arguments: `{ ${times(320, (i) => `w${i}: a(b: ${i}, c: $d)`)} }`,
  "a list": `{ a(b: [${"1 ".repeat(3_900)}]) }`,
  objects: `{ a(b: [${"{a:1}".repeat(700)}]) }`,
  "inline fragments": `{ a ${"... {b}".repeat(150)} }`,
  fragments: `{ a } ${times(50, (i) => `fragment F${i} on Q {${"a ".repeat(30)}}`)}`,
  directives: `{ ${"a @a ".repeat(199)} }`,
  variables: `query (${times(950, (i) => `$v${i}: A`)}) {a}`,
  spreads: `{ ${"...A ".repeat(1_900)} }`,
  strings: `{ ${times(200, (i) => `a${i}: a(b: "${"\\u0041".repeat(40)}")`)} }`,
  "long names": `{ ${times(440, (i) => `${"x".repeat(120)}${i}: __typename`)} }`,
  "a syntax error": `{ a } ${"#".repeat(60_000)}\n}`,
  "a comment": `{ a } #${"x".repeat(60_000)}`,
  lines: `{ ${"\n".repeat(60_000)} a }`,
  "two-byte text": `{ a } #${"é→".repeat(15_000)}`,
  "a few tokens": "{ a }",
};

/** The texts of requests are no parts of other strings. */
const receive = (text: string): string => Buffer.from(text).toString();

describe("the memory of documents", () => {
  it.each(Object.entries(DOCUMENTS))("is bounded: %s", (_name, text) => {
    const documents = createDocuments();
    const before = heapUsed();
    let tokens = 0;
    for (let i = 0; tokens < 110_000 && i < 20_000; i++) {
      const document = documents.use(receive(`${text} #${i}`), "192.0.2.0/24");
      document.isKept = true;
      documents.release(document);
      tokens += document.size;
    }
    expect(heapUsed() - before).toBeLessThan(70_000_000);
    // Keeps the documents until here.
    documents.use("{ a }", "192.0.2.0/24");
  });

  it("is bounded for 300 documents of the largest size, sent three times from twelve addresses", async () => {
    const world = await startWorld({ RATE_LIMIT_MAX: "1000000" });
    onTestFinished(() => world.close());
    const wallets = times(
      100,
      (i) => `w${i}: walletById(socialId: "${i}") { ${"socialId id ".repeat(9)} }`,
    );
    const largest = `query A { ${wallets} } query B { ${wallets} }`;
    const texts = Array.from({ length: 300 }, (_, i) => `${largest} #${i}`);
    await world.post("/graphql", { query: largest, operationName: "A" });
    const before = heapUsed();
    for (let round = 0; round < 3; round++)
      for (const [i, text] of texts.entries()) {
        const body = { query: text, operationName: "A" };
        const { status } = await world.post("/graphql", body, from(`192.0.${i % 12}.1`));
        expect(status).toBe(200);
      }
    expect(heapUsed() - before).toBeLessThan(120_000_000);
  });

  it("is bounded for open streams from two address blocks, and others can open streams", async () => {
    const world = await startWorld({ RATE_LIMIT_MAX: "1000000" });
    onTestFinished(() => world.close());
    const subscription = (i: number) =>
      `subscription { walletById(socialId: "17") { ${times(190, (j) => `x${"y".repeat(100)}${j}: id`)} } } ${times(8, (j) => `query Q${j} { ${times(90, (k) => `a${k}: __typename`)} }`)} #${i}`;
    const open = async (address: string, text: string, operationName?: string) => {
      const stream = await openEventStream(
        world.url,
        { query: text, ...(operationName && { operationName }) },
        { address },
      );
      onTestFinished(() => {
        stream.close();
      });
      return stream.status;
    };
    const named = (i: number) => subscription(i).replace("subscription {", "subscription S {");
    const before = heapUsed();
    const statuses = await atOnce(220, (i) =>
      open(`192.0.${2 + (i % 2)}.${i % 11}`, named(i), "S"),
    );
    expect(statuses.filter((status) => status === 200).length).toBeLessThan(20);
    expect(statuses).toContain(429);
    expect(heapUsed() - before).toBeLessThan(60_000_000);
    const QUERY = 'subscription { walletById(socialId: "17") { id } }';
    expect(await open("198.51.100.1", QUERY)).toBe(200);
  });
});

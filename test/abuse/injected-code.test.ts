import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAGIC_DATE } from "../support/fuzz/documents.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_MAX: "1000000" });
});
afterAll(() => world.close());

/** What a compiler of documents may take for code, or for the end of a literal. */
const TEXTS = [
  MAGIC_DATE,
  "';process.exit(1);'",
  '\\";process.exit(1);//',
  "`+process.exit(1)+`",
  "${process.exit(1)}",
  "\u2028process.exit(1)//",
  "*/process.exit(1)/*",
  "</script><script>alert(1)</script>",
];

/** Documents with this literal, each of which fails for one wallet or collect. */
const documentsWith = (literal: string) => [
  `{ wallet(handle: ${literal}) { id } }`,
  `{ wallets(handles: [${literal}]) { id } }`,
  `{ walletById(socialId: ${literal}) { id } }`,
  `query Q { ...F } fragment F on Query { wallet(handle: ${literal}) { id } }`,
  `query Q($h: String! = ${literal}) { wallet(handle: $h) { id } }`,
  `{ wallet(handle: "creator") { coins(mints: [${literal}]) { mint } } }`,
  `mutation { collect(socialId: ${literal}) { success } }`,
  `mutation { collectMany(collects: [{ socialId: ${literal} }]) { success } }`,
];
const EXPECTED = ["INVALID_HANDLE", "INVALID_SOCIAL_ID", "INVALID_MINT"];

describe.each(TEXTS)("the text %j in a document", (text) => {
  const blockString = `"""${text}"""`;
  const literals = [JSON.stringify(text), ...(/[\\"]/.test(text) ? [] : [blockString])];
  it.each(literals.flatMap(documentsWith))("is only text: %s", async (query) => {
    const url = `/graphql?${new URLSearchParams({ query }).toString()}`;
    const isMutation = query.startsWith("mutation");
    const answers = [];
    for (let i = 0; i < 4; i++) {
      answers.push((await world.graphql(query)).body);
      if (!isMutation) answers.push((await world.request(url)).body);
    }
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(answers[0].errors).toHaveLength(1);
    expect(EXPECTED).toContain(answers[0].errors[0].extensions.code);
    expect(JSON.stringify(answers)).not.toContain(process.version);
  });
});

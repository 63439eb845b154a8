import { expect, it } from "vitest";
import { TRUSTED_BLOCK } from "../../src/fairness/budget.ts";
import { createDocuments } from "../../src/graphql/documents.ts";

const BLOCK = "192.0.2.0/24";
/** Counts as some 3,950 of the 100,000 tokens that all documents may have. */
const textOf = (i: number) => `{ a(b: [${"1 ".repeat(3_900)}]) } #${i}`;

// Compared by `===`: printing the difference of two documents takes minutes.
it("the least recently used documents go first, and none that is in use", () => {
  const documents = createDocuments();
  const read = (i: number) => {
    const document = documents.use(textOf(i), BLOCK);
    document.isKept = true;
    documents.release(document);
    return document;
  };
  const held = documents.use(textOf(0), BLOCK);
  const [first, second] = [read(1), read(2)];
  for (let i = 3; i < 24; i++) read(i);
  expect(read(1) === first).toBe(true);
  for (let i = 24; i < 28; i++) read(i);
  expect(documents.use(textOf(0), BLOCK) === held).toBe(true);
  expect(read(1) === first).toBe(true);
  expect(read(2) === second).toBe(false);
});

it("a document whose caller was not admitted goes after its use", () => {
  const documents = createDocuments();
  const document = documents.use(textOf(0), BLOCK);
  documents.release(document);
  expect(documents.use(textOf(0), BLOCK) === document).toBe(false);
});

it("requests and streams of a block use an eighth of the tokens, trusted callers half, and all together no more", () => {
  const documents = createDocuments();
  let used = 0;
  /** Uses new documents until one is refused. Returns how many were not, and the refusal. */
  function useAll(block: string) {
    for (let count = 0; ; count++) {
      try {
        documents.use(textOf(used++), block);
      } catch (error) {
        return [count, error];
      }
    }
  }
  const SHARE_USED = { code: "RATE_LIMITED", extensions: { scope: "CALLER" } };
  const ALL_USED = { code: "SERVICE_BUSY", extensions: { scope: "SERVICE" } };
  expect(useAll(TRUSTED_BLOCK)).toMatchObject([12, SHARE_USED]);
  for (let i = 0; i < 4; i++) expect(useAll(`192.0.${i}.0/24`)).toMatchObject([3, SHARE_USED]);
  expect(useAll("198.51.100.0/24")).toMatchObject([1, ALL_USED]);
});

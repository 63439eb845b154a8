import { newMint } from "../../test/support/new-mint.ts";

const times = <T>(count: number, make: (i: number) => T) =>
  Array.from({ length: count }, (_, i) => make(i));
const toVariables = (values: readonly unknown[]) =>
  Object.fromEntries(values.map((value, i) => [`v${i}`, value]));

let id = 10n ** 17n;

/**
 * Queries of as many ids or mints as one operation may name, and variables with ones that were
 * never used.
 */
export const HUNDRED_QUERIES = {
  ids: {
    query: `query (${times(100, (i) => `$v${i}: String!`).join(" ")}) {
      ${times(100, (i) => `w${i}: walletById(socialId: $v${i}) { balance { total } }`).join(" ")}
    }`,
    newVariables: () => toVariables(times(100, () => String(id++))),
  },
  mints: {
    query: `query (${times(10, (i) => `$v${i}: [String!]!`).join(" ")}) {
      ${times(10, (i) => `w${i}: walletById(socialId: "${i + 1}") { coins(mints: $v${i}) { waiting } }`).join(" ")}
    }`,
    newVariables: () => toVariables(times(10, () => times(10, newMint))),
  },
};

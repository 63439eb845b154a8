import { HUNDRED_QUERIES } from "../../test/support/hundred-queries.ts";
import { newMint } from "../../test/support/new-mint.ts";
import type { Attack } from "./price-of.ts";

const repeat = (count: number, field: string) => `${field} `.repeat(count);

let sent = 0;
/** Posts an operation that no earlier request had, so that it is parsed and validated. */
const post =
  (toBody: () => { query: string; operationName?: string; variables?: object }): Attack["send"] =>
  ({ send }) => {
    const { query, ...others } = toBody();
    return send("/graphql", {}, { query: `#${++sent}\n${query}`, ...others });
  };
const hundred = ({ query, newVariables }: (typeof HUNDRED_QUERIES)["ids"]) =>
  post(() => ({ query, variables: newVariables() }));

const objects = <T>(count: number, value: T) => new Array<T>(count).fill(value);
const membersOf = (count: number, value: unknown) =>
  Object.fromEntries(objects(count, value).map((each, i) => [`a${i}`, each]));
const toVariables = (count: number, make: () => unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`v${i}`, make()]));
const listOf = (count: number, write: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => write(i)).join(" ");

/** Posts a known operation. */
const collectMany =
  (c: readonly object[]): Attack["send"] =>
  ({ send }) =>
    send(
      "/graphql",
      {},
      {
        query: "mutation ($c: [CollectInput!]!) { collectMany(collects: $c) { success } }",
        variables: { c },
      },
    );

/** A caller that has five requests left. */
const LIMITED = { "x-forwarded-for": "203.0.113.10" };
/** About as many tokens and fields as a document may have. */
const TEN_COLLECTS = `mutation { ${listOf(10, (i) => `c${i}: collect(socialId: "${i + 1}") { ${"success ".repeat(190)} }`)} }`;

const THIRTY_MINTS = `query (${listOf(30, (i) => `$v${i}: String!`)}) {
  walletsById(socialIds: [${listOf(100, (i) => `"${i + 1}"`)}]) {
    ${listOf(3, (i) => `c${i}: coins(mints: [${listOf(10, (j) => `$v${10 * i + j}`)}]) { waiting }`)}
  }
}`;
const mintsOf = (mint?: string) => toVariables(30, () => mint ?? newMint());

const HUNDRED_COINS = `query (${listOf(100, (i) => `$v${i}: [String!]!`)}) {
  ${listOf(100, (i) => `w${i}: walletById(socialId: "${i + 1}") { coins(mints: $v${i}) { waiting } }`)}
}`;

export const GRAPHQL_ATTACKS: readonly Attack[] = [
  {
    name: "330 equal fields in an operation that does not run",
    send: post(() => ({
      operationName: "Q",
      query: `query Q { __typename } query Other { ${repeat(330, 'wallet(handle: "creator") { address }')} }`,
    })),
  },
  { name: "100 new ids", send: hundred(HUNDRED_QUERIES.ids) },
  { name: "100 new mints", send: hundred(HUNDRED_QUERIES.mints) },
  { name: "`variables` with 9,000 unknown members", send: collectMany([membersOf(9_000, 1)]) },
  { name: "Invalid `variables` of 90 kB", send: collectMany(objects(8, membersOf(5, "\n".repeat(1_100)))) },
  {
    name: "A new operation, refused for its cost",
    prepare: ({ send }) =>
      Promise.all(objects(15, LIMITED).map((caller) => send("/wallet/lookup?handle=creator", caller))),
    send: ({ send }) => send("/graphql", LIMITED, { query: `#${++sent}\n${TEN_COLLECTS}` }),
  },
  {
    name: "3,000 mints in a known operation for 100",
    prepare: ({ send }) => send("/graphql", {}, { query: THIRTY_MINTS, variables: mintsOf(newMint()) }),
    send: ({ send }) => send("/graphql", {}, { query: THIRTY_MINTS, variables: mintsOf() }),
  },
  {
    name: "100 wallets with a new mint each (counts as 3)",
    send: post(() => ({ query: HUNDRED_COINS, variables: toVariables(100, () => [newMint()]) })),
  },
];

import { HUNDRED_QUERIES } from "../../test/support/hundred-queries.ts";
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
];

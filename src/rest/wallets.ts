import { Response } from "@whatwg-node/fetch";
import { ContractError } from "../contract/contract-error.ts";
import { JSON_TYPE, respondJson, toErrorBody } from "../contract/http-messages.ts";
import { assertMintNames } from "../contract/mint.ts";
import { acceptedTypes } from "../graphql/media-types.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { MAX_WALLETS } from "../schema/field-costs.ts";
import { causeOf, dataOf, type PrepareOperation } from "./prepared-operation.ts";
import { toRestWallet, walletFragment, type RestWallet } from "./wallet.ts";

const WALLETS_OPERATION = /* GraphQL */ `
  query Wallets($handles: [String!]!, $socialIds: [String!]!) {
    wallets(handles: $handles) {
      ...RestWallet
    }
    walletsById(socialIds: $socialIds) {
      ...RestWallet
    }
  }
  ${walletFragment()}
`;

const CSV_TYPE = "text/csv; charset=utf-8";
/** Spreadsheets turn an id of 19 digits into another number, but leave this text as it is. */
const ID_PREFIX = "id:";
const LEADING_PREFIX = new RegExp(`^${ID_PREFIX}`);

/** The field of the operation that looks up accounts by this query parameter. */
const FIELDS = { handle: "wallets", socialId: "walletsById" } as const;
type Name = keyof typeof FIELDS;

/** An account's wallet, or its error with the name in the query. */
type Entry = RestWallet | { error: ContractError; handle?: string; socialId?: string };

/**
 * `GET /wallets?handle=&socialId=`: the wallets of many accounts in the order of the query, each as
 * in a lookup or with its error. As CSV, if the caller prefers it.
 */
export function createWalletsHandler(
  prepare: PrepareOperation,
  format?: "csv",
): (request: Request, scope: RequestScope) => Promise<Response> {
  const run = prepare(WALLETS_OPERATION);

  /** Looks the accounts up. An entry has an error if anything of its wallet is missing. */
  async function readEntries(query: URLSearchParams, scope: RequestScope): Promise<Entry[]> {
    const handles = query.getAll("handle");
    const socialIds = query.getAll("socialId").map((id) => id.replace(LEADING_PREFIX, ""));
    const count = handles.length + socialIds.length;
    if (count < 1 || count > MAX_WALLETS)
      throw new ContractError("BAD_REQUEST", {
        message: `Name 1 to ${MAX_WALLETS} accounts, each by \`handle\` or \`socialId\`. Received ${count}.`,
      });
    const { data, errors = [] } = await run({ handles, socialIds }, scope);
    if (!data) return dataOf({ errors });
    const entriesOf = (name: Name, accounts: readonly string[]) =>
      accounts.map((account, i): Entry => {
        const error = errors.find(({ path }) => path?.[0] === FIELDS[name] && path[1] === i);
        if (error) return { [name]: account, error: scope.toCallerError(causeOf(error)) };
        return (data[FIELDS[name]] as readonly RestWallet[])[i]!;
      });
    const entries = new Map<string, Entry[]>([
      ["handle", entriesOf("handle", handles)],
      ["socialId", entriesOf("socialId", socialIds)],
    ]);
    return [...query.keys()].flatMap((name) => entries.get(name)?.shift() ?? []);
  }

  return async ({ url, headers }, scope) => {
    await scope.admit(1);
    const { searchParams } = new URL(url);
    assertMintNames(searchParams.keys(), []);
    const entries = await readEntries(searchParams, scope);
    for (const entry of entries) if ("error" in entry) scope.recordCode(entry.error.code);
    const types = acceptedTypes(headers.get("accept"), [JSON_TYPE, CSV_TYPE]);
    const vary = format ? undefined : { vary: "Accept" };
    if (format === "csv" || types[0] === CSV_TYPE)
      return new Response(toCsv(entries), { headers: { "content-type": CSV_TYPE, ...vary } });
    const wallets = entries.map((entry) => {
      if (!("error" in entry)) return toRestWallet(entry);
      const { error, ...name } = entry;
      return { ...name, ...toErrorBody(error) };
    });
    return respondJson(200, { wallets }, vary);
  };
}

const AMOUNTS = ["vault", "pda", "total", "withdrawable"] as const;
const COLUMNS = [
  ...["handle", "socialId", "address"],
  ...AMOUNTS,
  ...AMOUNTS.map((name) => `${name}Lamports`),
  "error",
];

/**
 * One row for each account. Nothing that a stranger chooses, such as a profile: a spreadsheet would
 * run a text that begins with `=` as a formula. A name is left out that is none.
 */
function toCsv(entries: readonly Entry[]): string {
  const rows = entries.map((entry) => {
    const { handle = "", socialId = "" } = entry;
    const names = [
      /^\w+$/.test(handle) ? handle : "",
      /^\d+$/.test(socialId) ? `${ID_PREFIX}${socialId}` : "",
    ];
    if ("error" in entry)
      return [...names, ...AMOUNTS.flatMap(() => ["", ""]), "", entry.error.code];
    const { address, balance, lamports } = entry;
    const amounts = [balance, lamports].flatMap((each) => AMOUNTS.map((name) => each[name]));
    return [...names, address, ...amounts, ""];
  });
  return [COLUMNS, ...rows].map((row) => `${row.join(",")}\r\n`).join("");
}

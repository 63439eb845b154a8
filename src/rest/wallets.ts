import { Response } from "@whatwg-node/fetch";
import { ContractError } from "../contract/contract-error.ts";
import { JSON_TYPE, respondJson, toErrorBody } from "../contract/http-messages.ts";
import { assertMintNames } from "../contract/mint.ts";
import { acceptedTypes } from "../graphql/media-types.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { MAX_WALLETS } from "../schema/field-costs.ts";
import { causeOf, dataOf, type PrepareOperation } from "./prepared-operation.ts";
import { toRestWallet, walletFragment, type RestWallet } from "./wallet.ts";

/** The variables and the fields have the names of the query's parameters. */
const WALLETS_OPERATION = /* GraphQL */ `
  query Wallets($handle: [String!]!, $socialId: [String!]!) {
    handle: wallets(handles: $handle) {
      ...RestWallet
      ...Amounts
    }
    socialId: walletsById(socialIds: $socialId) {
      ...RestWallet
      ...Amounts
    }
  }
  fragment Amounts on Wallet {
    amounts: balance {
      vault
      pda
      total
      withdrawable
      vaultLamports
      pdaLamports
      totalLamports
      withdrawableLamports
    }
  }
  ${walletFragment()}
`;

const CSV_TYPE = "text/csv; charset=utf-8";
const CSV_HEADER =
  "handle,socialId,address,vault,pda,total,withdrawable,vaultLamports,pdaLamports,totalLamports,withdrawableLamports,error";
/**
 * What a cell may have. Nothing else that a stranger chooses: a spreadsheet would run a text that
 * begins with `=` as a formula.
 */
const CELL = /^(?:id:\d+|[\w.]+)$/;

/** An account's wallet and its amounts for CSV, or its error with the name in the query. */
type Entry = Partial<RestWallet> & {
  readonly amounts?: Readonly<Record<string, string>>;
  readonly error?: ContractError;
};

/**
 * `GET /wallets?handle=&socialId=`: the wallets of many accounts in the order of the query, each as
 * in a lookup or with its error. As CSV, if the caller prefers it, and at `/wallets.csv`.
 */
export function createWalletsHandler(prepare: PrepareOperation) {
  const run = prepare(WALLETS_OPERATION);

  /** Looks the accounts up. An entry has an error if anything of its wallet is missing. */
  async function readEntries(query: URLSearchParams, scope: RequestScope): Promise<Entry[]> {
    const accounts = {
      handle: query.getAll("handle"),
      socialId: query.getAll("socialId").map((id) => id.replace(/^id:/, "")),
    };
    const count = accounts.handle.length + accounts.socialId.length;
    if (count < 1 || count > MAX_WALLETS)
      throw new ContractError("BAD_REQUEST", {
        message: `Name 1 to ${MAX_WALLETS} accounts, each by \`handle\` or \`socialId\`. Received ${count}.`,
      });
    const { data, errors = [] } = await run(accounts, scope);
    if (!data) return dataOf({ errors });
    const next = { handle: 0, socialId: 0 };
    return [...query.keys()].flatMap((name): readonly Entry[] => {
      if (name !== "handle" && name !== "socialId") return [];
      const i = next[name]++;
      const cause = errors.find(({ path }) => path?.[0] === name && path[1] === i);
      if (!cause) return (data[name] as readonly Entry[]).slice(i, i + 1);
      const error = scope.toCallerError(causeOf(cause));
      scope.recordCode(error.code);
      return [{ [name]: accounts[name][i], error }];
    });
  }

  return async ({ url, headers }: Request, scope: RequestScope): Promise<Response> => {
    await scope.admit(1);
    const { pathname, searchParams } = new URL(url);
    assertMintNames(searchParams.keys(), []);
    const entries = await readEntries(searchParams, scope);
    const [type] = acceptedTypes(headers.get("accept"), [JSON_TYPE, CSV_TYPE]);
    const vary = { vary: "Accept" };
    if (pathname.endsWith(".csv") || type === CSV_TYPE)
      return new Response(toCsv(entries), { headers: { "content-type": CSV_TYPE, ...vary } });
    const wallets = entries.map(({ error, ...wallet }) => ({
      ...(error ? { ...wallet, ...toErrorBody(error) } : toRestWallet(wallet as RestWallet)),
      amounts: undefined,
    }));
    return respondJson(200, { wallets }, vary);
  };
}

/** One row for each account. */
function toCsv(entries: readonly Entry[]): string {
  const columns = CSV_HEADER.split(",");
  // Spreadsheets turn an id of 19 digits into another number, but leave it as it is after `id:`.
  const rows = entries.map(({ handle, socialId, address, amounts, error }) => {
    const cells: Readonly<Record<string, string | undefined>> = {
      ...{ handle, address, ...amounts },
      socialId: socialId && `id:${socialId}`,
      error: error?.code,
    };
    const row = columns.map((column) => {
      const cell = cells[column] ?? "";
      return CELL.test(cell) ? cell : "";
    });
    return row.join(",");
  });
  return [CSV_HEADER, ...rows].map((row) => `${row}\r\n`).join("");
}

import { Response } from "@whatwg-node/fetch";
import { ContractError } from "../contract/contract-error.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { JSON_TYPE, respondJson, toErrorBody } from "../contract/http-messages.ts";
import { assertMintNames, toMints } from "../contract/mint.ts";
import { acceptedTypes } from "../graphql/media-types.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { MAX_WALLETS } from "../schema/field-costs.ts";
import type { PrepareOperation } from "./prepared-operation.ts";

/** What REST shows of the wallet that a field returns. */
const operationOf = (field: string) => /* GraphQL */ `
  query Wallet($key: String!, $mints: [String!]!, $hasMints: Boolean!) {
    wallet: ${field} {
      handle
      socialId
      address
      derivation {
        program
        seeds
        bump
      }
      balance(mints: $mints) {
        vault
        pda
        total
        withdrawable
      }
      lamports: balance(mints: $mints) {
        vault: vaultLamports
        pda: pdaLamports
        total: totalLamports
        withdrawable: withdrawableLamports
      }
      profile {
        name
        verified
        followers
        pictureUrl
      }
      coins(mints: $mints) @include(if: $hasMints) {
        mint
        stage
        waiting
        amount
        quoteMint
        shareBps
        collectable
        reason
      }
    }
  }
`;

/** The amounts of a balance, in the order of CSV's columns. */
const AMOUNTS = ["vault", "pda", "total", "withdrawable"] as const;
type Amounts = Readonly<Record<(typeof AMOUNTS)[number], string>>;

interface Data {
  readonly wallet: {
    readonly handle: string;
    readonly socialId: string;
    readonly address: string;
    readonly balance: Amounts;
    readonly lamports: Amounts;
    readonly profile: Record<string, unknown>;
  };
}

/** `mints` is a collect's name, and `mint[]` that of axios, PHP and n8n for a list. */
const MINT_PARAMETERS = ["mint", "mints", "mint[]"];

const CSV_TYPE = "text/csv; charset=utf-8";
const CSV_HEADER =
  "handle,socialId,address,vault,pda,total,withdrawable,vaultLamports,pdaLamports,totalLamports,withdrawableLamports,error";
/**
 * What a cell may have. Nothing else that a stranger chooses: a spreadsheet would run a text that
 * begins with `=` as a formula.
 */
const CELL = /^(?:id:\d+|[\w.]+)$/;

/** The handlers of the paths that show wallets, by the fields of GraphQL. */
export function createWalletHandlers(prepare: PrepareOperation, format: HandleFormat) {
  const operations = {
    handle: prepare<Data>(operationOf("wallet(handle: $key)")),
    socialId: prepare<Data>(operationOf("walletById(socialId: $key)")),
  };

  /** Reads the wallet of an account that is named by `handle` or `socialId`. */
  async function read(name: string, key: string, mints: readonly string[], scope: RequestScope) {
    const variables = { key, mints, hasMints: mints.length > 0 };
    const { wallet } = await operations[name as "handle"](variables, scope);
    const { lamports, balance, profile, ...shown } = wallet;
    // JSON.stringify omits undefined members.
    for (const member in profile) profile[member] ??= undefined;
    return { ...shown, balance: { ...balance, lamports }, profile };
  }
  /** An account's wallet, or its error with the name in the query. */
  type Entry = Partial<Awaited<ReturnType<typeof read>>> & { readonly error?: string };

  /** The loaders of the request merge the reads of all entries. */
  async function readEntry(name: string, text: string, scope: RequestScope): Promise<Entry> {
    const key = name === "socialId" ? text.replace(/^id:/, "") : text;
    return read(name, key, [], scope).catch((cause: unknown) => {
      const error = scope.toCallerError(cause);
      scope.recordCode(error.code);
      return { [name]: key, ...toErrorBody(error) };
    });
  }

  /** One row for each account. */
  function toCsv(entries: readonly Entry[]): string {
    const rows = entries.map(({ handle, socialId, address, balance, error }) => {
      const amounts = [balance, balance?.lamports].flatMap((each) =>
        AMOUNTS.map((name) => each?.[name]),
      );
      // Spreadsheets turn an id of 19 digits into another number, but leave it as it is after `id:`.
      const cells = [handle, socialId && `id:${socialId}`, address, ...amounts, error];
      return cells.map((cell = "") => (CELL.test(cell) ? cell : "")).join(",");
    });
    return [CSV_HEADER, ...rows].map((row) => `${row}\r\n`).join("");
  }

  return {
    /** `GET /wallet/lookup?handle=&mint=`: a wallet, with `coins` if there are mints. */
    async lookup({ url }: Request, scope: RequestScope): Promise<Response> {
      const { searchParams } = new URL(url);
      const [handle, ...others] = searchParams.getAll("handle");
      if (handle === undefined) throw new ContractError("HANDLE_REQUIRED");
      if (others.length > 0) throw invalidHandle(format, `${others.length + 1} handles`);
      assertMintNames(searchParams.keys(), MINT_PARAMETERS);
      // Forms send empty parameters.
      const mints = MINT_PARAMETERS.flatMap((name) => searchParams.getAll(name)).filter(Boolean);
      // Check the mints first: the operation would check them only after it has looked up the handle.
      if (format.pattern.test(handle)) toMints(mints);
      return respondJson(200, await read("handle", handle, mints, scope));
    },

    /**
     * `GET /wallets?handle=&socialId=`: the wallets of many accounts in the order of the query, each
     * as in a lookup or with its error. As CSV, if the caller prefers it, and at `/wallets.csv`.
     */
    async wallets({ url, headers }: Request, scope: RequestScope): Promise<Response> {
      const { pathname, searchParams } = new URL(url);
      assertMintNames(searchParams.keys(), []);
      const accounts = [...searchParams].filter(([name]) => Object.hasOwn(operations, name));
      if (accounts.length < 1 || accounts.length > MAX_WALLETS)
        throw new ContractError("BAD_REQUEST", {
          message: `Name 1 to ${MAX_WALLETS} accounts, each by \`handle\` or \`socialId\`. Received ${accounts.length}.`,
        });
      const wallets = await Promise.all(
        accounts.map(([name, text]) => readEntry(name, text, scope)),
      );
      const [type] = acceptedTypes(headers.get("accept"), [JSON_TYPE, CSV_TYPE]);
      const isCsv = pathname.endsWith(".csv") || type === CSV_TYPE;
      return new Response(isCsv ? toCsv(wallets) : JSON.stringify({ wallets }), {
        headers: { "content-type": isCsv ? CSV_TYPE : JSON_TYPE, vary: "Accept" },
      });
    },
  };
}

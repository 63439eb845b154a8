import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { renderGraphiQL } from "@graphql-yoga/render-graphiql";

const EXAMPLE_OPERATIONS = `# Ctrl+Enter runs the operation at the cursor.

query OneWallet {
  wallet(handle: "creator") {
    handle
    socialId
    address
    balance {
      vault
      pda
      total
      withdrawable
    }
  }
}

query ManyWallets {
  wallets(handles: ["creator", "newcomer", "dusty"]) {
    handle
    balance {
      total
    }
  }
}

mutation Collect {
  collect(socialId: "put the socialId of a wallet here") {
    success
    collected
    newBalance
    txSignature
    message
  }
}
`;

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "public, max-age=3600",
  vary: "Accept, Accept-Encoding",
};

/** Whether a browser asks for the page: anything else at the endpoint is an operation. */
export function wantsGraphiQL({ method, headers }: Request): boolean {
  return method === "GET" && (headers.get("accept") ?? "").includes("text/html");
}

/**
 * GraphiQL's page, complete in itself: it loads nothing from elsewhere. It has 9 MB, so it is made and
 * compressed once, and sent in pieces from one Blob.
 */
export function createGraphiQL(endpoint: string): (request: Request) => Promise<Response> {
  let pages: Promise<{ plain: Blob; compressed: Blob }> | undefined;

  async function make() {
    const html = renderGraphiQL({ title: "Tributary", endpoint, defaultQuery: EXAMPLE_OPERATIONS });
    return { plain: new Blob([html]), compressed: new Blob([await promisify(gzip)(html)]) };
  }

  return async ({ headers }) => {
    pages ??= make();
    const { plain, compressed } = await pages;
    return /\bgzip\b(?! *; *q=0(\.0*)? *(,|$))/.test(headers.get("accept-encoding") ?? "")
      ? new Response(compressed, { headers: { ...HEADERS, "content-encoding": "gzip" } })
      : new Response(plain, { headers: HEADERS });
  };
}

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { GraphiQLOptions } from "graphql-yoga";
import { acceptedTypes, RESULT_TYPES } from "../../graphql/media-types.ts";

const HTML = "text/html; charset=utf-8";
const MAY_BE_HTML = /text\/(?:html|\*)/i;

/** A sandbox account that the pages suggest. */
export interface ExampleAccount {
  readonly handle: string;
  /** The numeric id as decimal digits. */
  readonly id: string;
  /** The coins whose creator is this account. */
  readonly coins?: readonly { readonly mint: string }[];
}

/**
 * Whether this GET is a browser's request for the page. Every other request to the endpoint is an
 * operation.
 */
export function wantsGraphiQL({ headers }: Request): boolean {
  const accept = headers.get("accept") ?? "";
  return MAY_BE_HTML.test(accept) && acceptedTypes(accept, [...RESULT_TYPES, HTML])[0] === HTML;
}

/** Yoga's page, and the style sheet and the script that it loads. */
export type GraphiQL = Readonly<Record<"html" | "css" | "script", string>>;

/**
 * Renders GraphiQL, which opens with the example operations. A worker does so, because the package
 * has 9 MB: it does not stay in memory, and loading it delays no caller.
 */
export async function renderGraphiQL(accounts: readonly ExampleAccount[]): Promise<GraphiQL> {
  const workerData: GraphiQLOptions = {
    title: '<a href="./">Tributary</a> <a href="docs">REST</a>',
    logo: '<a href="./" aria-label="Tributary"><img src="assets/icon.svg" alt="" width="32" height="32" /></a>',
    favicon: "assets/icon.svg",
    defaultEditorToolsVisibility: false,
    isHeadersEditorEnabled: false,
    defaultQuery: exampleOperations(accounts),
  };
  const worker = new Worker(new URL("./graphiql-worker.ts", import.meta.url), { workerData });
  const [page] = (await once(worker, "message")) as [GraphiQL];
  return page;
}

/**
 * All operations are in one document, because after a change of tabs GraphiQL runs the old tab's
 * operation. The comments in it are short enough for a phone's editor.
 */
function exampleOperations(accounts: readonly ExampleAccount[]): string {
  const launcher = accounts.find(({ coins = [] }) => coins.length > 0);
  const [first = "creator", second = "artist", third = "friend"] = accounts.map(
    ({ handle }) => handle,
  );
  const id = accounts[0]?.id ?? "the socialId of a wallet";
  const quote = (text: string) => JSON.stringify(text);
  const mints = (launcher?.coins ?? []).slice(0, 1).map(({ mint }) => quote(mint));
  return `# ▶ runs one of these.

query Wallet {
  wallet(handle: ${quote(first)}) {
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

# All in one request, with
# a variable.
query Wallets(
  $handles: [String!]! = [
    ${[first, second, third].map(quote).join("\n    ")}
  ]
) {
  wallets(handles: $handles) {
    handle
    balance {
      vault
      total
    }
  }
}

# Fees on these coins.
query Coins {
  wallet(handle: ${quote(launcher?.handle ?? first)}) {
    coins(mints: [${mints.join(", ")}]) {
      mint
      stage
      waiting
      collectable
      reason
    }
  }
}

# Moves the fees. Takes a
# wallet's socialId.
mutation Collect {
  collect(socialId: ${quote(id)}) {
    success
    collected
    newBalance
    txSignature
    error
    message
  }
}

# Now, and each change.
subscription Live {
  wallet(handle: ${quote(first)}) {
    balance {
      vault
      pda
    }
  }
}
`;
}

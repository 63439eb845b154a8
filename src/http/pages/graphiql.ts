import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { preferredType, RESPONSE_TYPES } from "../../graphql/media-types.ts";

const HTML = "text/html; charset=utf-8";

/** An account of the sandbox that the pages suggest to try. */
export interface ExampleAccount {
  readonly handle: string;
  /** The numeric id as decimal digits. */
  readonly id: string;
  /** The coins with this account as their creator. */
  readonly coins?: readonly { readonly mint: string }[];
}

/** Whether a browser requests the page. Every other request to the endpoint is an operation. */
export function wantsGraphiQL({ method, headers }: Request): boolean {
  return method === "GET" && preferredType(headers.get("accept"), [...RESPONSE_TYPES, HTML]) === HTML;
}

/** GraphiQL's script, which renders into the page's `#root`, and its style sheet. */
export interface GraphiQLFiles {
  readonly script: Uint8Array<ArrayBuffer>;
  readonly css: Uint8Array<ArrayBuffer>;
}

/** Builds GraphiQL's files in a worker, so that its package of 9 MB does not stay in memory. */
export async function loadGraphiQL(): Promise<GraphiQLFiles> {
  const worker = new Worker(new URL("./graphiql-worker.ts", import.meta.url));
  const [files] = (await once(worker, "message")) as [GraphiQLFiles];
  return files;
}

/** GraphiQL's options, as JSON. It opens with the example operations. */
export function graphiqlOptions(accounts: readonly ExampleAccount[]): string {
  return JSON.stringify({
    title: '<a href="./">Tributary</a>',
    logo: '<img src="assets/icon.svg" alt="" width="32" height="32" />',
    defaultEditorToolsVisibility: false,
    defaultQuery: exampleOperations(accounts),
  });
}

/** Example operations with the first three accounts, or with placeholders if there are none. */
function exampleOperations(accounts: readonly ExampleAccount[]): string {
  const [first = '"creator"', second = '"artist"', third = '"friend"'] = accounts.map(({ handle }) =>
    JSON.stringify(handle),
  );
  const id = JSON.stringify(accounts[0]?.id ?? "the socialId of a wallet");
  return `# Ctrl+Enter runs the operation at the cursor.

query OneWallet {
  wallet(handle: ${first}) {
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

# Many wallets in one operation count as one request.
query ManyWallets {
  wallets(handles: [${[first, second, third].join(", ")}]) {
    handle
    balance {
      vault
      total
    }
  }
}

# The same, with an alias for each wallet.
query NamedWallets {
  mine: wallet(handle: ${first}) {
    balance {
      vault
      total
    }
  }
  theirs: wallet(handle: ${second}) {
    balance {
      vault
      total
    }
  }
}

# Moves the fees in the vault to the address. Takes a wallet's socialId.
mutation Collect {
  collect(socialId: ${id}) {
    success
    collected
    newBalance
    txSignature
    error
    message
  }
}
`;
}

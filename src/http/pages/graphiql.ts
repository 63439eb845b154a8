import { editorWorkerService, graphqlWorker, js, jsonWorker } from "@graphql-yoga/render-graphiql/graphiql";
import { preferredType, RESPONSE_TYPES } from "../../graphql/media-types.ts";

const HTML = "text/html; charset=utf-8";

/** An account of the sandbox that the pages suggest to try. */
export interface SandboxAccount {
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

/**
 * GraphiQL's script. It renders into `#root`, opens with the `examples`, sends operations to the page's own
 * path, and loads nothing from other origins.
 */
export function graphiqlScript(examples: string): string {
  const options = {
    title: '<a href="./">Tributary</a>',
    logo: '<img src="assets/icon.svg" alt="" width="32" height="32" />',
    defaultEditorToolsVisibility: false,
    defaultQuery: examples,
  };
  const workers = { editorWorkerService, graphql: graphqlWorker, json: jsonWorker };
  // The editor requests its workers by these names. They are part of this script, so their URLs are blobs.
  const start = `{
  const workers = ${JSON.stringify(workers)};
  const toUrl = (source) => URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  self.MonacoEnvironment = { globalAPI: false, getWorkerUrl: (_, name) => toUrl(workers[name]) };
  YogaGraphiQL.renderYogaGraphiQL(document.getElementById("root"), ${JSON.stringify(options)});
}`;
  return `${js}\n${start}\n`;
}

/** Example operations with the first three accounts, or with placeholders if there are none. */
export function exampleOperations(accounts: readonly SandboxAccount[]): string {
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

import { editorWorkerService, graphqlWorker, js, jsonWorker } from "@graphql-yoga/render-graphiql/graphiql";

/** An account of the sandbox, for people to try things on. */
export interface PlayAccount {
  readonly handle: string;
  /** The numeric id as decimal digits. */
  readonly id: string;
}

/** Whether a browser asks for the page: anything else at the endpoint is an operation. */
export function wantsGraphiQL({ method, headers }: Request): boolean {
  return method === "GET" && (headers.get("accept") ?? "").includes("text/html");
}

/**
 * GraphiQL's script, which loads nothing from elsewhere. It renders into `#root` and sends operations to the
 * page's own path; it opens with the `examples`.
 */
export function graphiqlScript(examples: string): string {
  const options = {
    title: '<a href="./">Tributary</a>',
    logo: '<img src="assets/icon.svg" alt="" width="32" height="32" />',
    defaultEditorToolsVisibility: false,
    defaultQuery: examples,
  };
  const workers = { editorWorkerService, graphql: graphqlWorker, json: jsonWorker };
  // The editor asks for its workers by these names; they come from blobs, since they have no files of their own.
  const start = `{
  const workers = ${JSON.stringify(workers)};
  const toUrl = (source) => URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  self.MonacoEnvironment = { globalAPI: false, getWorkerUrl: (_, name) => toUrl(workers[name]) };
  YogaGraphiQL.renderYogaGraphiQL(document.getElementById("root"), ${JSON.stringify(options)});
}`;
  return `${js}\n${start}\n`;
}

/** Example operations on the first three accounts, or on names to be replaced where there are none. */
export function exampleOperations(accounts: readonly PlayAccount[]): string {
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

# Many at once count as one request.
query ManyWallets {
  wallets(handles: [${[first, second, third].join(", ")}]) {
    handle
    balance {
      vault
      total
    }
  }
}

# The same with names of your own.
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

# Moves what is in the vault to the address. The id is a wallet's socialId.
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

/**
 * The typical flow with GraphQL, for the creator of a new token and any number of tracked accounts:
 * look up all of them in one request, then collect the fees of each, for the creator also those
 * that wait on coins.
 *
 *     node examples/graphql/flow.ts <base URL> <handle> [tracked handle ...]
 *
 * TypeScript infers the types of results and variables from the operations' text and from
 * schema.d.ts, which `npm run schema` generates from schema.graphql. Needs Node 22.18 or later.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { initGraphQLTada, type TadaDocumentNode } from "gql.tada";
import { print } from "graphql";
import type { introspection } from "./schema.d.ts";

const graphql = initGraphQLTada<{ introspection: introspection; scalars: { Lamports: string } }>();

const Account = graphql(`
  fragment Account on Wallet @_unmask {
    handle
    socialId
    address
    balance {
      vault
      vaultLamports
    }
  }
`);

const LookUp = graphql(
  `
    query LookUp($creator: String!, $tracked: [String!]!) {
      creator: wallet(handle: $creator) {
        ...Account
        coinsSeen
      }
      tracked: wallets(handles: $tracked) {
        ...Account
      }
    }
  `,
  [Account],
);

const Collect = graphql(`
  mutation Collect($socialId: String!, $mints: [String!]!) {
    collect(socialId: $socialId, mints: $mints) {
      success
      collected
      newBalance
      txSignature
      message
    }
  }
`);

interface Failure {
  message: string;
  /** The field that failed; absent when the whole request failed. */
  path?: (string | number)[];
  /** NO_RESPONSE is this client's own code, for no response or an unreadable one. */
  extensions: { code: string; retryAfterSeconds?: number };
}

interface Answer<Data> {
  /** A field that failed is null and has an entry in `errors`. */
  data?: Data | null;
  errors?: Failure[];
}

/**
 * Collect errors that mean nothing was moved. After any other, a transaction may be in flight or
 * have landed.
 */
const NOTHING_MOVED_CODES = ["INVALID_SOCIAL_ID", "INSUFFICIENT_FUNDS", "RATE_LIMITED"];
/** The most that a collect takes. */
const MAX_MINTS = 10;
const MAX_WAIT_SECONDS = 60;
const TIMEOUT_MS = 90_000;

const [baseUrl, creator, ...tracked] = process.argv.slice(2);
if (!baseUrl || !creator) {
  console.error(
    "Too few arguments: node examples/graphql/flow.ts <base URL> <handle> [tracked handle ...]",
  );
  process.exit(1);
}

// 1. Look up all of them in one request. A failed lookup does not affect the others.
const found = await execute(LookUp, { creator, tracked });
for (const failure of found.errors ?? []) {
  // A path is, for example, ["creator"] or ["tracked", 2, "balance"].
  const [alias, index] = failure.path ?? [];
  report(
    `${!alias ? "The request" : alias === "creator" ? creator : tracked[Number(index)]}`,
    failure,
  );
}
const wallets = [found.data?.creator, ...(found.data?.tracked ?? [])].filter((wallet) => !!wallet);
for (const { handle, address, balance } of wallets) {
  console.log(`${handle}: address ${address}, in the vault: ${balance?.vault ?? "unknown"} SOL`);
}

// 2. On the launch platform, launch a token with the address as its creator. Trading fills the
//    vault.

// 3. Collect. Anyone may do this; the service pays the fee. Each collect counts as one request in
//    the rate limit. Fees also wait on coins: the creator's collect names those that were swept
//    lately.
const coinsOfCreator = found.data?.creator?.coinsSeen?.slice(0, MAX_MINTS) ?? [];
for (const { handle, socialId, balance } of wallets) {
  if (!balance) continue;
  const mints = socialId === found.data?.creator?.socialId ? coinsOfCreator : [];
  if (balance.vaultLamports === "0" && mints.length === 0) {
    console.log(`${handle}: nothing to collect`);
    continue;
  }
  const { data, errors = [] } = await execute(Collect, { socialId, mints });
  const result = data?.collect;
  if (result?.success) {
    console.log(
      `${handle}: collected ${result.collected} SOL, new balance ${result.newBalance} SOL`,
    );
    console.log(`${handle}: transaction ${result.txSignature}`);
  } else if (result) {
    // An empty vault, or one with too little to collect, is not an error.
    console.log(`${handle}: nothing to collect: ${result.message}`);
  }
  for (const failure of errors) {
    report(`${handle}`, failure);
    if (NOTHING_MOVED_CODES.includes(failure.extensions.code)) continue;
    console.error("It is not known whether the fees were moved. Collecting again is safe.");
  }
}

/**
 * Runs an operation. RATE_LIMITED rejects the whole request, with Retry-After, before anything is
 * done: waits and retries, unless the wait is too long.
 */
async function execute<Data, Variables>(
  operation: TadaDocumentNode<Data, Variables>,
  variables: Variables,
): Promise<Answer<Data>> {
  try {
    for (let waited = 0; ;) {
      const response = await fetch(`${baseUrl}/graphql`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ query: print(operation), variables }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const answer = (await response.json()) as Answer<Data>;
      if (!answer.data && !answer.errors) throw new Error(`HTTP ${response.status}`);
      const seconds = Number(response.headers.get("retry-after") ?? NaN);
      if (!(waited + seconds <= MAX_WAIT_SECONDS)) return answer;
      console.log(`RATE_LIMITED: retrying in ${seconds} s`);
      await sleep(seconds * 1_000);
      waited += seconds;
    }
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? `${message}: ${cause.message}` : message;
    return { errors: [{ message: reason, extensions: { code: "NO_RESPONSE" } }] };
  }
}

/** Prints a failure and continues; the exit code will be 1. */
function report(
  subject: string,
  { message, extensions: { code, retryAfterSeconds } }: Failure,
): void {
  const hint = retryAfterSeconds === undefined ? "" : ` (retry in ${retryAfterSeconds} s)`;
  console.error(`${subject}: ${code}: ${message}${hint}`);
  process.exitCode = 1;
}

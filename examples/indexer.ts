/**
 * Tracks many creators within the service's limits, and collects what is worth it. README.md has
 * the arithmetic.
 *
 *     node examples/indexer.ts <base URL> <file with a handle on each line> [least SOL to collect] [rounds]
 *
 * Keeps the ids in a file beside that of the handles. Needs Node 22.18 or later.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { initGraphQLTada, type TadaDocumentNode } from "gql.tada";
import { print } from "graphql";
import { fetchWithRetry } from "./clients/failures.ts";
import type { introspection } from "./graphql/schema.d.ts";
import { createLedger, type Collected } from "./ledger.ts";

const graphql = initGraphQLTada<{ introspection: introspection; scalars: { Lamports: string } }>();

const Resolve = graphql(`
  query Resolve($handles: [String!]!) {
    wallets(handles: $handles) {
      socialId
    }
  }
`);
const Read = graphql(`
  query Read($ids: [String!]!) {
    walletsById(socialIds: $ids) {
      balance {
        vaultLamports
      }
    }
  }
`);
const Collect = graphql(`
  mutation Collect($collects: [CollectInput!]!) {
    collectMany(collects: $collects) {
      success
      collected
      collectedLamports
      txSignature
      message
      lastCollects {
        collectedLamports
        txSignature
      }
    }
  }
`);

/** An operation may have so many wallets, for one request of the rate limit. */
const WALLETS = 100;
/** Each collect counts as one request. More wait longer, until all of them fit into the limit. */
const COLLECTS = 10;
/** Another try cannot help. */
const FINAL_CODES = ["SOCIAL_NOT_FOUND", "INVALID_HANDLE"];

interface Failure {
  message: string;
  path?: (string | number)[];
  extensions: { code: string; lastCollects?: Collected[] };
}

const [baseUrl, file, leastSol = "0.1", rounds = "Infinity"] = process.argv.slice(2);
if (!baseUrl || !file) {
  console.error(
    "Too few arguments: node examples/indexer.ts <base URL> <file of handles> [SOL] [rounds]",
  );
  process.exit(1);
}
if (!existsSync(file)) {
  console.error(`There is no file ${file}: create it, with a handle on each line`);
  process.exit(1);
}
const handles = readFileSync(file, "utf8").split("\n").filter(Boolean);
const idsFile = `${file}.ids.json`;
/** The ids by handle; null for a handle that is invalid or has no account. */
const ids: Record<string, string | null> = existsSync(idsFile)
  ? (JSON.parse(readFileSync(idsFile, "utf8")) as Record<string, string | null>)
  : {};
/** What has been collected. A bot that restarts would keep it in a file. */
const ledger = createLedger();
/** The accounts whose last collect failed, although its transaction may have landed. */
const uncertainIds = new Set<string>();

for (let round = 1; round <= Number(rounds); round++) {
  await resolve();
  const found = handles.flatMap((handle) => (ids[handle] ? { handle, socialId: ids[handle] } : []));
  const worth: typeof found = [];
  for (const some of chunksOf(found, WALLETS)) {
    const { data } = await run(Read, { ids: some.map(({ socialId }) => socialId) });
    worth.push(
      ...some.filter(({ socialId }, i) => {
        const lamports = data?.walletsById[i]?.balance?.vaultLamports;
        const isWorth = lamports !== undefined && Number(lamports) >= Number(leastSol) * 1e9;
        return isWorth || uncertainIds.has(socialId);
      }),
    );
  }
  console.log(
    `Round ${round}: ${found.length} of ${handles.length} creators, ${worth.length} to collect`,
  );
  for (const some of chunksOf(worth, COLLECTS)) {
    const collects = some.map(({ socialId }) => ({ socialId }));
    const { data, errors } = await run(Collect, { collects });
    some.forEach(({ handle, socialId }, i) => {
      const result = data?.collectMany[i];
      const failure = failureAt(errors, i);
      // Collecting again is safe. If the transaction landed, the next answer has it in lastCollects.
      if (result) {
        uncertainIds.delete(socialId);
        ledger.record(socialId, result);
      } else uncertainIds.add(socialId);
      for (const each of (result ?? failure?.extensions)?.lastCollects ?? [])
        ledger.record(socialId, each);
      const problem = result ? result.message : failure?.message;
      console.log(
        result?.success
          ? `${handle}: collected ${result.collected} SOL: ${result.txSignature}`
          : `${handle}: ${problem}`,
      );
    });
  }
  if (worth.length > 0) console.log(`Collected so far: ${Number(ledger.total()) / 1e9} SOL`);
}

/** Resolves the handles that have no id yet, and keeps their ids, which never change. */
async function resolve(): Promise<void> {
  const missing = handles.filter((handle) => !(handle in ids));
  for (const some of chunksOf(missing, WALLETS)) {
    const { data, errors } = await run(Resolve, { handles: some });
    some.forEach((handle, i) => {
      const { socialId } = data?.wallets[i] ?? {};
      if (socialId) ids[handle] = socialId;
      const failure = failureAt(errors, i);
      if (failure && FINAL_CODES.includes(failure.extensions.code)) {
        ids[handle] = null;
        console.log(`${handle}: ${failure.message}`);
      }
    });
    writeFileSync(idsFile, JSON.stringify(ids));
    // SERVICE_BUSY: the service reads only so many accounts an hour. The next round goes on.
    if (some.some((handle) => !(handle in ids))) return;
  }
}

function failureAt(errors: readonly Failure[], index: number): Failure | undefined {
  return errors.find(({ path }) => path === undefined || path[1] === index);
}

/** Runs an operation. Waits for the rate limit. */
async function run<Data, Variables>(
  operation: TadaDocumentNode<Data, Variables>,
  variables: Variables,
): Promise<{ data?: Data | null; errors: Failure[] }> {
  const response = await fetchWithRetry(`${baseUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: print(operation), variables }),
  });
  return { errors: [], ...((await response.json()) as object) };
}

function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}

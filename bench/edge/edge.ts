/**
 * Measures lookups over HTTP, compared with the servers in reference.ts and bare-reference.ts. Needs Debian's `wrk`.
 * The servers share one core, the load generator and the fake upstreams the other. The servers take turns in each
 * round. The CPU time is the server's own, so it depends less on what else the machine does; its ratio is the
 * reference's time divided by the server's. Fails if the servers' answers differ.
 *
 *     node bench/edge/edge.ts [rounds] [seconds] [rows whose title contains this]
 */
import { isDeepStrictEqual } from "node:util";
import {
  cacheHandles,
  cpuMicroseconds,
  folder,
  gatewayEnv,
  load,
  rssMb,
  start,
  startGateway,
  stopAll,
  untilIdle,
  warmUp,
  type Result,
} from "./servers.ts";

const ROUNDS = Number(process.argv[2] ?? 3);
const SECONDS = Number(process.argv[3] ?? 4);
const CACHED_HANDLES = 1_000;
const CLIENTS = ["curl", "urql", "apollo", "graphql-request"];

const CASES = [
  { name: "rest", title: "REST lookup with a live balance" },
  ...CLIENTS.map((client) => ({
    name: "balance",
    client,
    title: `GraphQL \`wallet\` with balance, ${client}`,
  })),
  ...CLIENTS.map((client) => ({
    name: "plain",
    client,
    title: `GraphQL \`wallet\` without balance, ${client}`,
  })),
  { name: "aliases", title: "100 aliased wallets with balance" },
].filter(({ title }) => title.includes(process.argv[4] ?? ""));

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

try {
  const upstreams = await start(1, `${folder}/upstreams.ts`);
  const env = gatewayEnv(upstreams.url);
  const gateway = await startGateway(env);
  const reference = await start(0, `${folder}/reference.ts`, env);
  const limitedReference = await start(0, `${folder}/reference.ts`, { ...env, WITH_LIMIT: "1" });
  const bareReference = await start(0, `${folder}/bare-reference.ts`, env);
  const urls = [gateway, reference, limitedReference, bareReference].map(({ url }) => url);
  await compareAnswers(urls);
  for (const url of urls) await cacheHandles(url, CACHED_HANDLES);
  const counts = async () =>
    (await (await fetch(`${upstreams.url}/counts`)).json()) as { social: number; chain: number };

  console.log("| one request at a time | p50 ms | p99 ms |\n|---|--:|--:|");
  const sequential = [
    { title: "bare upstream call", url: upstreams.url, name: "plain", results: [] as Result[] },
    { title: "lookup, reference", url: reference.url, name: "rest", results: [] as Result[] },
    { title: "lookup, gateway", url: gateway.url, name: "rest", results: [] as Result[] },
  ];
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { url, name, results } of sequential) {
      const result = await load(url, { name }, SECONDS, CACHED_HANDLES, 1);
      if (round > 0) results.push(result); // The first round is a warm-up.
    }
  }
  for (const { title, results } of sequential) {
    console.log(
      `| ${title} | ${median(results.map(({ p50 }) => p50))} | ${median(results.map(({ p99 }) => p99))} |`,
    );
  }

  console.log(
    "\n| | server | requests/s | ratio | to the bare one | CPU µs per request | CPU ratio | to the bare one | p50 ms | p99 ms | chain calls per request | refused | memory MB |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
  );
  for (const one of CASES) {
    const servers = [
      { server: "reference", ...reference },
      { server: "bare reference", ...bareReference },
      { server: "reference, limited", ...limitedReference },
      { server: "gateway", ...gateway },
    ].map((server) => ({
      ...server,
      results: [] as Result[],
      rates: [] as number[],
      cpu: [] as number[],
      calls: 0,
    }));
    for (const server of servers) {
      await warmUp(server.url, one, CACHED_HANDLES);
      await untilIdle(server);
    }
    for (let round = 0; round < ROUNDS; round++) {
      for (const server of servers) {
        const before = { ...(await counts()), cpu: cpuMicroseconds(server.child) };
        const result = await load(server.url, one, SECONDS, CACHED_HANDLES);
        server.cpu.push((cpuMicroseconds(server.child) - before.cpu) / result.requests);
        server.calls += (await counts()).chain - before.chain;
        server.results.push(result);
        server.rates.push(result.requests / result.seconds);
        await untilIdle(server);
      }
    }
    const [base, bare] = servers;
    for (const { server, rates, cpu, results, calls, child } of servers) {
      const requests = results.reduce((sum, result) => sum + result.requests, 0);
      const refused = results.reduce((sum, result) => sum + result.refused + result.errors, 0);
      const cells = [
        one.title,
        server,
        median(rates).toFixed(0),
        ...[base, bare].map((other) => (median(rates) / median(other!.rates)).toFixed(2)),
        median(cpu).toFixed(1),
        ...[base, bare].map((other) => (median(other!.cpu) / median(cpu)).toFixed(2)),
        median(results.map(({ p50 }) => p50)),
        median(results.map(({ p99 }) => p99)),
        (calls / requests).toFixed(3),
        refused,
        rssMb(child),
      ];
      console.log(`| ${cells.join(" | ")} |`);
    }
  }
} finally {
  stopAll();
}

/** Fails unless all servers answer lookups alike: over REST, and over GraphQL by POST and by GET. */
async function compareAnswers(urls: readonly string[]): Promise<void> {
  const query =
    "query W($h: String!) { wallet(handle: $h) { handle socialId address balance { vault pda total } } }";
  const variables = { h: "name1" };
  const aliases = Array.from({ length: 100 }, (_, i) => `w${i}: wallet(handle: "name${i}") { ...Seen }`);
  const many = `{ ${aliases.join(" ")} } fragment Seen on Wallet { address balance { vault } }`;
  const search = new URLSearchParams({ query, variables: JSON.stringify(variables), operationName: "W" });
  const toPost = (body: object) => ({
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  for (const [path, init] of [
    ["/wallet/lookup?handle=name1"],
    [`/graphql?${search}`],
    ["/graphql", toPost({ query, variables })],
    ["/graphql", toPost({ query: many })],
  ] as const) {
    const answers: unknown[] = [];
    for (const url of urls) answers.push(await (await fetch(url + path, init)).json());
    if (answers.some((answer) => !isDeepStrictEqual(answer, answers[0])))
      throw new Error(`the answers to ${path} differ: ${JSON.stringify(answers)}`);
  }
}

/**
 * Compares lookups over HTTP at this gateway, at the server in reference.ts, at the same with Yoga
 * and, if a folder is given, at the gateway of another checkout. Needs Debian's `wrk`. The servers
 * run on one core, the load generator and the fake upstreams on another. A round measures one server
 * after the other. CPU time counts only the server's process, so other load on the machine affects
 * it less. A ratio above 1 is better than the reference; a CPU ratio in bold is below the least one.
 * A second table shows the servers at the same rate. Fails if the servers' answers differ. Takes 12
 * minutes with 3 rounds of 4 seconds.
 *
 *     node bench/edge/edge.ts [rounds] [seconds] [rows whose title contains this] [another checkout's folder]
 */
import { isDeepStrictEqual } from "node:util";
import { median, printHead, printRow } from "../measure.ts";
import {
  cacheHandles,
  CASES,
  CASES_AT_PLAN_RATE,
  cpuMicroseconds,
  gatewayEnv,
  load,
  PLAN_RATE,
  rssMb,
  startGateway,
  startReference,
  startUpstreams,
  stopServers,
  untilIdle,
  WARM_UP_SECONDS,
} from "./servers.ts";

const [rounds = 3, seconds = 4, part = "", otherCheckout] = process.argv.slice(2);

/** The measurement of one server in one round. `cpu` is in µs; `calls` are calls to the chain. */
type Round = Awaited<ReturnType<typeof load>> & { cpu: number; calls: number };

const rateOf = (rounds: readonly Round[]) =>
  median(rounds.map((round) => round.requests / round.seconds));
const cpuOf = (rounds: readonly Round[]) =>
  median(rounds.map((round) => round.cpu / round.requests));

/** Throws unless all servers give equal answers to lookups over REST and GraphQL. */
async function compareAnswers(urls: readonly string[]): Promise<void> {
  const fields = "handle socialId address balance { vault pda total }";
  const query = `query ($h: String!) { wallet(handle: $h) { ${fields} } w: wallet(handle: "name2") { ${fields} } }`;
  const search = new URLSearchParams({ query, variables: '{"h":"name1"}' });
  for (const path of ["/wallet/lookup?handle=name1", `/graphql?${search}`]) {
    const answers: unknown[] = [];
    for (const url of urls) answers.push(await (await fetch(url + path)).json());
    if (answers.some((answer) => !isDeepStrictEqual(answer, answers[0])))
      throw new Error(`the answers to ${path} differ: ${JSON.stringify(answers)}`);
  }
}

try {
  const upstreams = await startUpstreams();
  const env = gatewayEnv(upstreams.url);
  const servers = [
    { title: "reference", server: await startReference(env) },
    { title: "reference with Yoga", server: await startReference({ ...env, YOGA: "1" }) },
    ...(otherCheckout
      ? [{ title: "other gateway", server: await startGateway(env, { checkout: otherCheckout }) }]
      : []),
    { title: "gateway", server: await startGateway(env) },
  ];
  const urls = servers.map(({ server }) => server.url);
  await compareAnswers(urls);
  for (const url of urls) await cacheHandles(url);
  const chainCalls = async () => Number(await (await fetch(`${upstreams.url}/chain-calls`)).text());

  printHead(
    ...["", "server", "requests/s", "ratio", "CPU µs per request", "ratio", "least"],
    ...["chain calls per request", "failed", "memory MB"],
  );
  for (const one of CASES.filter(({ title }) => title.includes(part))) {
    const measured = servers.map((server) => ({ ...server, rounds: [] as Round[] }));
    for (const { server } of servers) {
      await load(server.url, one, WARM_UP_SECONDS);
      await untilIdle(server);
    }
    for (let round = 0; round < Number(rounds); round++) {
      for (const { server, rounds } of measured) {
        const [calls, cpu] = [await chainCalls(), cpuMicroseconds(server.child)];
        const result = await load(server.url, one, Number(seconds));
        const used = {
          cpu: cpuMicroseconds(server.child) - cpu,
          calls: (await chainCalls()) - calls,
        };
        rounds.push({ ...result, ...used });
        await untilIdle(server);
      }
    }
    const [reference] = measured;
    for (const { title, server, rounds } of measured) {
      const cpuRatio = cpuOf(reference!.rounds) / cpuOf(rounds);
      const isTooLow = title === "gateway" && cpuRatio < (one.leastRatio ?? 0);
      printRow(
        ...[one.title, title],
        ...[rateOf(rounds).toFixed(0), (rateOf(rounds) / rateOf(reference!.rounds)).toFixed(2)],
        ...[
          cpuOf(rounds).toFixed(1),
          isTooLow ? `**${cpuRatio.toFixed(2)}**` : cpuRatio.toFixed(2),
        ],
        one.leastRatio ?? "",
        median(rounds.map(({ calls, requests }) => calls / requests)).toFixed(3),
        rounds.reduce((sum, { failed }) => sum + failed, 0),
        rssMb(server.child),
      );
    }
  }

  printHead(
    ...["", "server", "lookups/s", "share of a core", "p50 ms", "p99 ms"],
    ...["chain calls per lookup", "failed"],
  );
  for (const one of CASES_AT_PLAN_RATE.filter(({ title }) => title.includes(part))) {
    for (const { title, server } of servers) {
      await load(server.url, one, WARM_UP_SECONDS);
      await untilIdle(server);
      const [calls, cpu] = [await chainCalls(), cpuMicroseconds(server.child)];
      const result = await load(server.url, one, Number(rounds) * Number(seconds), PLAN_RATE);
      const used = cpuMicroseconds(server.child) - cpu;
      printRow(
        ...[one.title, title, (result.requests / result.seconds).toFixed(0)],
        `${((100 * used) / result.seconds / 1e6).toFixed(0)}%`,
        ...[result.p50Ms, result.p99Ms],
        (((await chainCalls()) - calls) / result.requests).toFixed(3),
        result.failed,
      );
      await untilIdle(server);
    }
  }
} finally {
  stopServers();
}

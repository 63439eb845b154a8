/**
 * Shows where the CPU time of a lookup goes, by parts of the gateway: in µs per request, under the
 * load of edge.ts. A sample belongs to the function on top of the stack; a function of Node or V8
 * belongs to the part that called it. Needs Debian's `wrk`.
 *
 *     node bench/edge/profile.ts [seconds] [cases whose title contains this] [another checkout's folder]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { printHead, printRow } from "../measure.ts";
import {
  cacheHandles,
  CASES,
  cpuMicroseconds,
  gatewayEnv,
  load,
  NEW_DOCUMENTS,
  startGateway,
  startUpstreams,
  stopServers,
  untilIdle,
  WARM_UP_SECONDS,
  type Case,
  type Server,
} from "./servers.ts";

const [seconds = 4, part = "", checkout] = process.argv.slice(2);
const INSPECTOR_PORT = 9_333;
const SAMPLE_US = 250;
const SHOWN_FUNCTIONS = 45;
/** Of functions, with `DETAILS=1`. */
const DETAILS = process.env.DETAILS !== undefined;

const HTTP = "Node's HTTP and sockets";
const OTHER = "other";

/** The first part whose pattern matches the function's name or file. */
const PARTS: readonly (readonly [part: string, file: RegExp])[] = [
  ["garbage collection", /^\(garbage collector\)/],
  ["JSON", /^(parse|stringify)$|parse-json/],
  [HTTP, /http\/(server|request-body)\.ts|@whatwg-node\/(server|node-fetch)/],
  ["rate limit, client address", /rate-limit|client-address|address-ranges|ipaddr/],
  ["log, metrics, spans", /observability|http\/metrics|@prometheus-io|pino|opentelemetry/],
  ["router, request scope", /src\/http|http-messages/],
  ["Yoga", /graphql-yoga|@whatwg-node|@graphql-tools|@envelop|node:internal\/deps\/undici/],
  [
    "parsing and validating documents",
    /graphql\/(language|validation|utilities)\/|operation-size|document-limits/,
  ],
  ["parameters, cached documents", /src\/graphql|negotiator|lru-cache|media-types/],
  ["executing documents", /graphql\/(execution|jsutils|type)\/|src\/rest/],
  [
    "resolvers, loaders",
    /src\/(resolvers|schema|social|contract)|dataloader|@pothos|chain\/primitives/,
  ],
  ["calls to the chain: HTTP", /undici|upstream\/http/],
  ["calls to the chain: checks, failover", /src\/chain\/rpc|zod/],
  ["merging and reading of balances", /src\/chain|batcher/],
  ["plan of chain calls", /src\/fairness/],
];

interface ProfileNode {
  readonly id: number;
  readonly callFrame: {
    readonly functionName: string;
    readonly url: string;
    readonly lineNumber: number;
  };
  readonly children?: readonly number[];
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Calls methods of V8's inspector. */
async function connectInspector() {
  const list = await fetch(`http://127.0.0.1:${INSPECTOR_PORT}/json/list`);
  const [{ webSocketDebuggerUrl }] = (await list.json()) as [{ webSocketDebuggerUrl: string }];
  const socket = new WebSocket(webSocketDebuggerUrl);
  await new Promise((resolve) => {
    socket.addEventListener("open", resolve, { once: true });
  });
  let lastId = 0;
  return (method: string, params = {}): Promise<unknown> => {
    const id = ++lastId;
    return new Promise((resolve) => {
      const receive = ({ data }: MessageEvent<string>) => {
        const message = JSON.parse(data) as { id: number; result: unknown };
        if (message.id !== id) return;
        socket.removeEventListener("message", receive);
        resolve(message.result);
      };
      socket.addEventListener("message", receive);
      socket.send(JSON.stringify({ id, method, params }));
    });
  };
}

/** The part of a stack, given from its top. */
function partOf(stack: readonly ProfileNode[]): string {
  for (const { callFrame } of stack) {
    const { functionName, url } = callFrame;
    if (functionName === "(program)") return "outside of JavaScript (system calls)";
    const isOfNode = url.startsWith("node:") && !url.includes("deps/undici");
    if (isOfNode) continue;
    const text =
      url === ""
        ? functionName
        : `${functionName} ${url.replace(/.*(?=\/(src|node_modules)\/)/, "")}`;
    const found = PARTS.find(([, pattern]) => pattern.test(text));
    if (found) return found[0];
    if (url !== "") return OTHER;
  }
  return stack.some(({ callFrame }) => callFrame.url.startsWith("node:")) ? HTTP : OTHER;
}

/** The sampled time in µs, by part and by function. */
function sum({ nodes, samples, timeDeltas }: Profile) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(
    nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node] as const)),
  );
  const byPart = new Map<string, number>();
  const byFunction = new Map<string, number>();
  samples.forEach((id, i) => {
    const top = byId.get(id)!;
    const { functionName, url, lineNumber } = top.callFrame;
    if (functionName === "(idle)") return;
    const stack: ProfileNode[] = [];
    for (let node: ProfileNode | undefined = top; node; node = parents.get(node.id))
      stack.push(node);
    const part = partOf(stack);
    byPart.set(part, (byPart.get(part) ?? 0) + timeDeltas[i]!);
    const name = `${functionName} ${url.replace(/.*\/(src|node_modules)\//, "")}:${lineNumber + 1} (${part})`;
    byFunction.set(name, (byFunction.get(name) ?? 0) + timeDeltas[i]!);
  });
  return { byPart, byFunction };
}

/** Returns the CPU time of each part, in µs per request. */
async function measure(server: Server, one: Case) {
  await load(server.url, one, one.warmUpSeconds ?? WARM_UP_SECONDS);
  await untilIdle(server);
  const call = await connectInspector();
  await call("Profiler.enable");
  await call("Profiler.setSamplingInterval", { interval: SAMPLE_US });
  await call("Profiler.start");
  const cpu = cpuMicroseconds(server.child);
  const { requests } = await load(server.url, one, Number(seconds));
  await untilIdle(server);
  const perRequest = (cpuMicroseconds(server.child) - cpu) / requests;
  const { profile } = (await call("Profiler.stop")) as { profile: Profile };
  const { byPart, byFunction } = sum(profile);
  const total = byPart.values().reduce((all, time) => all + time, 0);
  const scale = perRequest / total;
  return { perRequest, byPart, byFunction, scale };
}

try {
  const upstreams = await startUpstreams();
  const server = await startGateway(gatewayEnv(upstreams.url), {
    ...(checkout && { checkout }),
    flags: [`--inspect=127.0.0.1:${INSPECTOR_PORT}`],
  });
  await cacheHandles(server.url);
  await sleep(1_000);
  const columns: { title: string; measured: Awaited<ReturnType<typeof measure>> }[] = [];
  const cases = [...CASES, NEW_DOCUMENTS].filter(
    ({ title, client = "curl" }) => title.includes(part) && client === "curl",
  );
  for (const one of cases) columns.push({ title: one.title, measured: await measure(server, one) });

  printHead("CPU µs per request", ...columns.map(({ title }) => title));
  const parts = [...new Set(columns.flatMap(({ measured }) => [...measured.byPart.keys()]))];
  const timeOf = (name: string, { byPart, scale }: (typeof columns)[0]["measured"]) =>
    (byPart.get(name) ?? 0) * scale;
  parts.sort((a, b) => timeOf(b, columns[0]!.measured) - timeOf(a, columns[0]!.measured));
  for (const name of parts)
    printRow(name, ...columns.map(({ measured }) => timeOf(name, measured).toFixed(1)));
  printRow("**all**", ...columns.map(({ measured }) => measured.perRequest.toFixed(1)));

  if (DETAILS)
    for (const { title, measured } of columns) {
      const { byFunction, scale } = measured;
      printHead(title, "CPU µs per request");
      const sorted = [...byFunction].sort(([, a], [, b]) => b - a).slice(0, SHOWN_FUNCTIONS);
      for (const [name, time] of sorted) printRow(name, (time * scale).toFixed(2));
    }
} finally {
  stopServers();
}

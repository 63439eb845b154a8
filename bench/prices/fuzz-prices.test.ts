import { Agent, request } from "undici";
import { afterAll, expect } from "vitest";
import {
  createTarget,
  lookupCpuMs,
  MAX_LOOKUPS_PER_REQUEST,
  warmUp,
  type Target,
} from "./price-of.ts";
import { costlyRequests, type CostlyRequest } from "./costly-documents.ts";
import { fuzz } from "../../test/support/fuzz/fuzz.ts";
import { startProduction } from "../../test/support/production.ts";
import { startTestSandbox } from "../../test/support/sandbox.ts";

/**
 * Times vary with what else the machine does, so only `npm run fuzz` and `npm run bench:prices`
 * measure strictly.
 */
const TOLERANCE = process.env.FUZZ_SECONDS === undefined ? 10 : 1;
const MAX_ANSWER_BYTES = 5_000_000;
const MAX_WAIT_MS = 300;
/** What the process may keep after all requests: its caches are full by then. */
const MAX_KEPT_BYTES = 150_000_000;
const CASES_PER_MEMORY_CHECK = 50;
/** How often a request that seems too expensive is sent again. The cheapest run counts. */
const REPEATS = 6;
const RUNS = 3;
const RATE_LIMIT = 1_000_000;

const agents = { attacker: new Agent({ connections: 1 }), other: new Agent({ connections: 1 }) };
afterAll(() => {
  const { accepted, lookups, bytes, waitMs } = most;
  process.stdout.write(
    `fuzz | of ${checked} documents ${accepted} are within the limits; the most expensive takes ${lookups} lookups, ${bytes} bytes of answer, ${Math.round(waitMs)} ms of others' time\n`,
  );
  // The time limit may have cut a run.
  for (const agent of Object.values(agents)) agent.destroy(() => undefined);
});

interface Subject {
  readonly target: Target;
  readonly lookupMs: number;
  readonly heapAtStart: number;
}
let subject: Subject | undefined;
let sent = 0;
let checked = 0;
/** The highest values of all documents, and how many were not refused. */
const most = { accepted: 0, lookups: 0, bytes: 0, waitMs: 0 };

/** Starts the gateway as a process; it runs until the test ends. */
async function start(): Promise<Subject> {
  const sandbox = await startTestSandbox();
  const { client } = await startProduction(sandbox, { RATE_LIMIT_MAX: String(RATE_LIMIT) });
  const target = createTarget(client.url, sandbox);
  await warmUp(target);
  return { target, lookupMs: await lookupCpuMs(target), heapAtStart: await heapUsed(client.url) };
}

async function heapUsed(url: string): Promise<number> {
  const { body } = await request(`${url}/metrics`, { dispatcher: agents.other });
  return Number(/^nodejs_heap_size_used_bytes (.*)$/m.exec(await body.text())![1]);
}

/** Sends lookups, whose garbage makes V8 collect all of it, until the heap is small again. */
async function expectMemoryBack({ target, heapAtStart }: Subject): Promise<void> {
  let kept = Infinity;
  for (let i = 0; i < 100 && kept > MAX_KEPT_BYTES; i++) {
    await warmUp(target);
    kept = (await heapUsed(target.url)) - heapAtStart;
  }
  expect(kept).toBeLessThanOrEqual(MAX_KEPT_BYTES);
}

/** One run of a request. */
interface Run {
  /** Requests taken from the rate limit. */
  readonly counted: number;
  readonly bytes: number;
  readonly cpuMs: number;
  /** How long another caller's request waited meanwhile. */
  readonly waitMs: number;
  readonly status: number;
  /** Whether the document was within the limits, valid and paid for. */
  readonly isAccepted: boolean;
}

/** Sends a request. `comment` makes its document new. */
async function run({ target }: Subject, costly: CostlyRequest, comment: string): Promise<Run> {
  const { method, variables, operationName } = costly;
  const query = `${costly.query}${comment}`;
  const isStream = query.startsWith("subscription");
  const headers = {
    "x-forwarded-for": `172.16.${(++sent >> 8) & 255}.${sent & 255}`,
    "content-type": "application/json",
    accept: isStream ? "text/event-stream" : "application/json",
  };
  const search = new URLSearchParams({
    query,
    variables: JSON.stringify(variables),
    ...(operationName && { operationName }),
  });
  const path = method === "GET" ? `/graphql?${search.toString()}` : "/graphql";
  const cpuBefore = await target.cpuMs();
  const sending = request(target.url + path, {
    method,
    headers,
    dispatcher: agents.attacker,
    ...(method === "POST" && { body: JSON.stringify({ query, variables, operationName }) }),
  });
  const startedAt = performance.now();
  const waitedMs = request(`${target.url}/livez`, { dispatcher: agents.other })
    .then(({ body }) => body.arrayBuffer())
    .then(() => performance.now() - startedAt);
  // The end of the time limit aborts both.
  waitedMs.catch(() => undefined);
  const response = await sending;
  let bytes = 0;
  let start = "";
  for await (const chunk of response.body) {
    bytes += (chunk as Buffer).length;
    if (start.length < 2_000) start += String(chunk);
    // A stream's first event, or what is not one.
    if (String(response.headers["content-type"]).startsWith("text/event-stream") && bytes > 10)
      break;
  }
  const waitMs = await waitedMs;
  const remaining = /;r=(\d+)/.exec(String(response.headers.ratelimit))?.[1];
  const counted = remaining === undefined ? 1 : Math.max(1, RATE_LIMIT - Number(remaining));
  const cpuMs = (await target.cpuMs()) - cpuBefore;
  const isAccepted = response.statusCode === 200 && /"data"|event: next/.test(start);
  return {
    ...{ counted, bytes, cpuMs, status: response.statusCode, isAccepted },
    // What others waited without CPU time of the gateway, they waited for other processes.
    waitMs: Math.min(waitMs, cpuMs),
  };
}

fuzz("no document at the limits costs more than it counts", {
  share: 0.05,
  cases: costlyRequests,
  check(costly) {
    const checking = checkPrice(costly);
    // The time limit leaves the last check to itself.
    checking.catch(() => undefined);
    return checking;
  },
});

async function checkPrice(costly: CostlyRequest): Promise<void> {
  subject ??= await start();
  const { lookupMs } = subject;
  const priceOf = ({ cpuMs, counted }: Run) => cpuMs / lookupMs / counted;
  const isAbove = (one: Run) =>
    priceOf(one) > TOLERANCE * MAX_LOOKUPS_PER_REQUEST || one.waitMs > TOLERANCE * MAX_WAIT_MS;

  let runs: Run[] = [];
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const comment = `#${++sent}`;
    const again: Run[] = [];
    for (let i = 0; i < RUNS; i++) again.push(await run(subject, costly, comment));
    // Of the first runs, the second and the third, the cheapest each.
    runs = again.map((one, i) => {
      const earlier = runs[i];
      return earlier && priceOf(earlier) < priceOf(one) ? earlier : one;
    });
    if (!runs.some(isAbove)) break;
  }
  const prices = runs.map((one) => ({ ...one, lookups: Math.round(priceOf(one)) }));
  for (const { lookups, bytes, waitMs } of prices) {
    most.lookups = Math.max(most.lookups, lookups);
    most.bytes = Math.max(most.bytes, bytes);
    most.waitMs = Math.max(most.waitMs, waitMs);
  }
  if (runs[0]!.isAccepted) most.accepted++;
  expect(prices.filter((one) => isAbove(one) || one.bytes > MAX_ANSWER_BYTES)).toEqual([]);
  expect(prices.filter(({ status }) => status >= 500)).toEqual([]);
  if (++checked % CASES_PER_MEMORY_CHECK === 0) await expectMemoryBack(subject);
}

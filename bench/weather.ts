/**
 * Measures what ordinary trouble of RPC providers costs: in each weather, a gateway process of its
 * own, without Redis, answers lookups, collects, collects of accounts without fees, and histories,
 * at a steady pace. Compares each weather with the healthy one, and each collect with the chain's
 * ledger. The argument: run only the weathers whose name contains it, besides the healthy ones.
 * Exits with 1 if an answer about money is wrong.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonRpcCall } from "../src/sandbox/rpc/json-rpc.ts";
import type { SandboxAccount } from "../src/sandbox/sandbox.ts";
import { createClient, from, type Answer } from "../test/support/client.ts";
import "../test/support/exit-on-sigterm.ts";
import { isMethod } from "../test/support/sandbox.ts";
import { startReplica } from "./load/replica.ts";
import { median, percentile, printHead, printRow } from "./measure.ts";
import { hasHealthy, startChain, WEATHERS } from "./weathers.ts";
import { transfer } from "../test/support/faucet.ts";

/** The requests of a weather after the first one of each kind. */
const COUNTS = { lookup: 40, collect: 10, nothing: 12, history: 3 };
type Kind = keyof typeof COUNTS;
const KINDS = Object.keys(COUNTS) as Kind[];
/** In this time they are sent. Collects then begin at another moment of a slot each time. */
const PACE_MS = 14_200;
/** When the trouble of the middle begins. */
const MIDDLE_MS = 4_600;
const READY_MS = 10_000;
/** Far longer than all weathers take. */
const GIVE_UP_MS = 1_800_000;
const AT_ONCE = 2;

/** As multiples of the healthy weather's. */
const LIMITS = { lookup: 1.2, collect: 1.3, nothing: 1.2, calls: 2 };
const FIRST_MS = 2_000;
const FAILED = 0.05;

const SOL = 10n ** 9n;
const TRANSFERS = 5;
const HISTORY = `query ($id: String!) {
  walletById(socialId: $id) { history { nodes { signature } } }
}`;

/** A collect's account, the fees in its vault, and the answer. */
interface Collect {
  readonly account: SandboxAccount;
  readonly lamports: bigint;
  answer?: Answer;
}

async function start(weather: string) {
  const accounts: SandboxAccount[] = [];
  const take = () => accounts.shift()!;
  const collects: Collect[] = [];
  const withoutFees: SandboxAccount[] = [];
  const chain = await startChain(({ chain, accounts: all }) => {
    accounts.push(...all.filter(({ handle }) => handle.startsWith("artist")));
    const rent = chain.rentExemptMinimum(0);
    for (let i = 0; i <= COUNTS.collect; i++) {
      const collect = { account: take(), lamports: SOL + (BigInt(i) * SOL) / 1_000n };
      chain.setBalance(collect.account.creatorVault, rent + collect.lamports);
      for (let n = 0; n < TRANSFERS; n++) transfer(chain, collect.account.address, SOL);
      collects.push(collect);
    }
    for (let i = 0; i <= COUNTS.nothing; i++) {
      const account = take();
      chain.setBalance(account.creatorVault, rent);
      withoutFees.push(account);
    }
  });
  const calls: JsonRpcCall[] = [];
  const providers = await Promise.all(
    WEATHERS.get(weather)!.map((provider) => chain.startProvider(provider, calls)),
  );
  const replica = await startReplica({
    ...chain.sandbox.env,
    SOLANA_RPC_URL: providers.map(({ url }) => url).join(),
    TRUST_PROXY: "127.0.0.1",
  });
  const giveUp = AbortSignal.timeout(READY_MS);
  const isReady = async () => {
    while (!giveUp.aborted && !(await replica.isReady())) await sleep(50);
  };
  await Promise.race([isReady(), sleep(READY_MS)]);
  const client = createClient(replica.url);
  let callers = 0;
  const newCaller = () => from(`10.0.${callers++}.1`);

  /** Each sends the request with this number, and returns whether its answer is no failure. */
  const send: Record<Kind, (i: number) => Promise<boolean>> = {
    lookup: async () => (await client.lookup(take().handle, newCaller())).status === 200,
    async collect(i) {
      const collect = collects[i]!;
      collect.answer = await client.collect(collect.account.id, newCaller());
      return collect.answer.status === 200;
    },
    async nothing(i) {
      const answer = await client.collect(withoutFees[i]!.id, newCaller());
      return answer.status === 400;
    },
    /** Reads the history of an account whose collect was sent some seconds before. */
    async history(i) {
      const { id } = collects[Math.max(0, 3 * i - 2)]!.account;
      const answer = await client.graphql(HISTORY, { id }, newCaller());
      return !("errors" in answer.body);
    },
  };
  async function measure(kind: Kind, i: number) {
    const startedAt = performance.now();
    const isAnswered = await send[kind](i);
    return { kind, ms: performance.now() - startedAt, isAnswered };
  }
  return { weather, chain, providers, replica, calls, collects, measure };
}

type Started = Awaited<ReturnType<typeof start>>;
type Result = Awaited<ReturnType<typeof run>>;

/** Whether a call is made for collects rather than for lookups, histories or checks. */
function isOfCollect(
  { method, params }: JsonRpcCall,
  collects: readonly Collect[],
  old: Set<string>,
) {
  const [first] = params;
  if (method === "getMultipleAccounts")
    return collects.some(({ account }) => (first as string[]).includes(account.creatorVault));
  if (method === "getTransaction") return !old.has(first as string);
  return !isMethod("getGenesisHash", "getSignaturesForAddress")({ method });
}

/** Sends all requests, ends the weather, and checks the ledger. */
async function run({ weather, chain, providers, replica, calls, collects, measure }: Started) {
  const firsts = {
    lookup: await measure("lookup", 0),
    collect: await measure("collect", 0),
    nothing: await measure("nothing", 0),
    history: await measure("history", 0),
  };
  const { ledger } = chain.sandbox.chain;
  const old = new Set(ledger().map(({ signature }) => signature));
  calls.length = 0;
  const passing = sleep(MIDDLE_MS).then(() => Promise.all(providers.map((each) => each.pass())));
  const sending = KINDS.flatMap((kind) =>
    Array.from({ length: COUNTS[kind] }, async (_, i) => {
      await sleep(((i + 0.5) / COUNTS[kind]) * PACE_MS);
      return measure(kind, i + 1);
    }),
  );
  const answers = await Promise.all(sending);
  const made = calls.slice();
  await passing;
  await replica.stop();
  const problems = collects.flatMap((collect) => problemOf(collect, chain) ?? []);
  for (const problem of problems) console.error(`${weather}: ${problem}`);
  await Promise.all([chain, ...providers].map((each) => each.close()));

  const of = (kind: Kind) => answers.filter((answer) => answer.kind === kind);
  const timesOf = (kind: Kind) => of(kind).map(({ ms }) => ms);
  const failedOf = (kind: Kind) => of(kind).filter(({ isAnswered }) => !isAnswered).length;
  return {
    weather,
    firsts,
    timesOf,
    failedOf,
    callsPerCollect:
      made.filter((call) => isOfCollect(call, collects, old)).length / COUNTS.collect,
    calls: made.length,
    hasProblems: problems.length > 0,
  };
}

/** What is wrong with a collect by the chain's ledger, if anything. */
function problemOf({ account, lamports, answer }: Collect, { sandbox }: Started["chain"]) {
  const moves = sandbox.chain.ledger().flatMap((transaction) => {
    const { accountKeys } = transaction.message;
    const names = (address: string) => accountKeys.findIndex((each) => each === address);
    const [to, vault] = [names(account.address), names(account.creatorVault)];
    if (to < 0 || vault < 0 || transaction.err !== null) return [];
    const { signature, preBalances, postBalances } = transaction;
    const arrived = postBalances[to]! - preBalances[to]!;
    return arrived === 0n ? [] : [{ signature, arrived }];
  });
  const { collected, txSignature } = (answer?.body ?? {}) as Record<string, string | undefined>;
  const text = `${account.handle}: answered ${JSON.stringify(answer?.body)}, but the chain moved ${JSON.stringify(moves.map(({ signature, arrived }) => [signature, String(arrived)]))}`;
  if (moves.length > 1 || moves.some(({ arrived }) => arrived !== lamports)) return text;
  if (answer?.status !== 200) return undefined;
  const isTrue =
    collected === (Number(lamports) / 1e9).toFixed(4) && txSignature === moves[0]?.signature;
  return isTrue ? undefined : text;
}

const p95 = (result: Result, kind: Kind) => percentile(result.timesOf(kind), 95);

function printTimes({ weather, firsts, timesOf, failedOf, callsPerCollect, calls }: Result): void {
  const ms = (value: number) => value.toFixed(0);
  const spread = (kind: Kind) => [ms(median(timesOf(kind))), ms(Math.max(...timesOf(kind)))];
  const failed = [
    ...KINDS.filter((kind) => !firsts[kind].isAnswered).map((kind) => `first ${kind}`),
    ...KINDS.filter(failedOf).map((kind) => `${kind} ${failedOf(kind)} of ${COUNTS[kind]}`),
  ];
  printRow(
    ...[weather, ms(firsts.lookup.ms), ms(firsts.collect.ms)],
    ...[ms(median(timesOf("lookup"))), ms(percentile(timesOf("lookup"), 95))],
    ...[...spread("collect"), callsPerCollect.toFixed(1), calls],
    ...[...spread("nothing"), ...spread("history"), failed.join(", ")],
  );
}

/** Prints what each weather costs compared with the healthy one, and marks what is too much. */
function printRatios(results: readonly Result[]): void {
  printHead(
    ...["weather", "first, ms", "lookup p95", "collect p95", "calls each", "all calls"],
    ...["nothing p95", "failed lookups and collects"],
  );
  for (const result of results) {
    const { weather, firsts, failedOf } = result;
    const healthy = results.find(
      (each) => each.weather === (weather.startsWith("1") ? "1 healthy" : "2 healthy"),
    )!;
    const mark = (text: string, isTooMuch: boolean) => (isTooMuch ? `**${text}**` : text);
    const ratio = (value: number, of: number, limit: number) =>
      mark((value / of).toFixed(2), hasHealthy(weather) && value > of * limit);
    const ratioOf = (kind: "lookup" | "collect" | "nothing") =>
      ratio(p95(result, kind), p95(healthy, kind), LIMITS[kind]);
    const first = Math.max(firsts.lookup.ms, firsts.collect.ms);
    const failed = (["lookup", "collect"] as const).map((kind) => failedOf(kind) / COUNTS[kind]);
    printRow(
      ...[weather, mark(first.toFixed(0), hasHealthy(weather) && first > FIRST_MS)],
      ...[ratioOf("lookup"), ratioOf("collect")],
      ratio(result.callsPerCollect, healthy.callsPerCollect, LIMITS.calls),
      ratio(result.calls, healthy.calls, LIMITS.calls),
      ratioOf("nothing"),
      failed.map((share) => mark(`${(100 * share).toFixed(0)}%`, share > FAILED)).join(", "),
    );
  }
}

const wanted = process.argv[2] ?? "";
const names = [...WEATHERS.keys()].filter(
  (name) => name.endsWith(" healthy") || name.includes(wanted),
);
setTimeout(() => {
  console.error("the weathers take too long");
  process.exit(1);
}, GIVE_UP_MS).unref();
const results: Result[] = [];
printHead(
  ...["weather", "first lookup, ms", "first collect", "lookup p50", "p95", "collect p50", "max"],
  ...["calls each", "all calls", "nothing p50", "max", "history p50", "max", "failed answers"],
);
while (names.length > 0) {
  // A start takes the processor for some time, so no weather starts while another is measured.
  const started = await Promise.all(names.splice(0, AT_ONCE).map(start));
  const pair = await Promise.all(started.map(run));
  pair.forEach(printTimes);
  results.push(...pair);
}
printRatios(results);
process.exit(results.some(({ hasProblems }) => hasProblems) ? 1 : 0);

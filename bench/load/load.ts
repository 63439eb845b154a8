/**
 * The load test. Thousands of client addresses, some through a trusted caller, send lookups,
 * GraphQL batches and collects to two replicas with one Redis. Meanwhile fees arrive in vaults and
 * on coins, strangers keep distributions from paying, upstreams and Redis fail or are slow,
 * endpoints have bad nodes, the cluster changes, and a replica is killed. The test compares every
 * answer with the chain's timeline, audits the ledger, and checks this process for leaks.
 * `npm run load -- <seconds>` (default 60) exits with 1 on any problem.
 * `npm run load -- never-landing <transactions>` measures memory (never-landing.ts). LOAD_SEED
 * repeats a run's random choices, but callers may make them in another order. With a seed that ends
 * in 0, each account's collects alternate between the replicas, over a slow Redis. LOAD_BUSY=4 runs
 * beside four busy loops. LOAD_STRANGERS=50 instead measures an owner's collects beside strangers of
 * 50 address blocks (strangers.ts).
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { totalAtAddresses } from "./audit-ledger.ts";
import { audit } from "./audit.ts";
import { createCallers, type Callers } from "./callers.ts";
import { createFaultSchedule } from "./faults.ts";
import { runNeverLanding } from "./never-landing.ts";
import { createProblems, type Problems } from "./problems.ts";
import { toMegabytes } from "./replica.ts";
import { SHARED_COINS } from "./shared-coins.ts";
import { startBusyLoops } from "./busy-loops.ts";
import { runStrangers } from "./strangers.ts";
import { startSystem, type System } from "./system.ts";
import { createTruth, type Truth } from "./truth.ts";

/** The number of concurrent callers of each kind. */
const CONCURRENCY = {
  lookup: 16,
  wallets: 4,
  collect: 36,
  collects: 8,
  collectMany: 4,
  history: 2,
} as const;
const FEES_EVERY_MS = 20;
/**
 * Fees are random amounts up to this: some are below the minimum of a collect, most are far above
 * it.
 */
const MAX_FEES_LAMPORTS = 2_000_000;
/** The fraction of fees that arrive on coins with shared fees. */
const SHARED_FEES = 0.3;
/** By how much the first replica's heap may grow in the second half. */
const MAX_HEAP_GROWTH_BYTES = 24 * 1024 * 1024;
/**
 * After this time without a call about a transaction, none is open: replicas poll far more often.
 */
const QUIET_MS = 3_000;
/**
 * How long transactions may stay open after the last fault: until a block shows that they expired.
 */
const SETTLE_MS = 45_000;
/**
 * How long the last collects may take: longer than a blockhash is valid, plus an account's backoff.
 */
const RECOVERY_MS = 120_000;
const RETRY_MS = 1_000;
/** How long closed resources may take to disappear. */
const RELEASE_MS = 20_000;

interface LoadOptions {
  /** The shortest time for which faults are injected. */
  readonly seconds: number;
  readonly seed: number;
  /**
   * Whether to compare a heap after each half. In a run of a few seconds it grows, because caches
   * still fill.
   */
  readonly comparesHeaps: boolean;
}

/**
 * Runs the load with faults, then removes the faults, collects the remaining fees, and audits.
 * Returns the lines of the report, and a line for each kind of problem.
 */
export async function runLoad(options: LoadOptions) {
  const resourcesBefore = process.getActiveResourcesInfo().length;
  const problems = createProblems();
  const system = await startSystem(
    {
      SOCIAL_CACHE_SECONDS: "2",
      SOCIAL_READS_PER_HOUR: "0",
      SOCIAL_TIMEOUT_MS: "1000",
      RPC_TIMEOUT_MS: "1000",
      COLLECT_TIMEOUT_MS: "5000",
      FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000",
    },
    options.seed,
    SHARED_COINS,
  );
  const truth = createTruth(system, problems);
  const callers = createCallers(system, truth, problems);
  let lines: string[];
  try {
    lines = await attack(system, truth, callers, options, problems);
  } finally {
    await callers.close();
    await system.close();
  }
  const left = await resourcesLeft(resourcesBefore);
  if (left.length > 0) problems.add("resources that were not released", left.join(", "));
  lines.push(
    `| sockets, servers and timers left | ${left.length} |`,
    `| kinds of problem | ${problems.lines().length} |`,
  );
  return { lines, problems: problems.lines() };
}

/** Runs the load test on a started system; returns the lines of the report. */
async function attack(
  system: System,
  truth: Truth,
  callers: Callers,
  { seconds, comparesHeaps, seed }: LoadOptions,
  problems: Problems,
): Promise<string[]> {
  const totalBefore = totalAtAddresses(system);
  const faults = createFaultSchedule(system, problems);

  async function runFor(seconds: number): Promise<void> {
    const endsAt = performance.now() + seconds * 1_000;
    const isOver = () => performance.now() > endsAt;
    let haveFaultsEnded = false;
    await Promise.all([
      ...(Object.keys(CONCURRENCY) as (keyof typeof CONCURRENCY)[]).flatMap((kind) =>
        Array.from({ length: CONCURRENCY[kind] }, () =>
          callers.keepCalling(kind, () => haveFaultsEnded),
        ),
      ),
      faults.run(isOver).finally(() => (haveFaultsEnded = true)),
      keepAddingFees(system, () => haveFaultsEnded),
    ]);
  }

  async function runHalf() {
    await runFor(seconds / 2);
    const giveUpAt = Date.now() + SETTLE_MS;
    while (Date.now() - system.activity.lastCallAt < QUIET_MS && Date.now() < giveUpAt)
      await sleep(100);
    return Promise.all(system.replicas.map((replica) => replica.memory()));
  }

  const memories: Awaited<ReturnType<typeof runHalf>>[] = [];
  if (comparesHeaps) memories.push(await runHalf(), await runHalf());
  else await runFor(seconds);
  await collectTheRest(system, truth, callers, problems);
  const metrics = await Promise.all(system.replicas.map((replica) => replica.metrics()));
  await system.stopReplicas(problems);

  const audited = audit(system, callers.collects, totalBefore, problems);
  const { answers } = audited;
  if (answers.successes === 0) problems.add("no collect succeeded", "so the run proves nothing");
  // The sum may be too low, because a killed process loses its counts.
  const countedFees = metrics.reduce(
    (sum, read) => sum + read("tributary_fees_spent_lamports_total"),
    0,
  );
  if (countedFees > audited.costsLamports)
    problems.add("fees counted that nobody paid", `${countedFees} of ${audited.costsLamports}`);
  if (audited.distributions === 0)
    problems.add("no shared coin was distributed", "so the run proves too little");
  const heaps = memories.map(([first]) => first!.heap);
  if (comparesHeaps && heaps[1]! - heaps[0]! > MAX_HEAP_GROWTH_BYTES)
    problems.add("a heap that grew", heaps.map((heap) => toMegabytes(heap)).join(", "));

  return [
    "| call | calls | outcomes |",
    "|---|--:|---|",
    ...[...callers.outcomes].map(([kind, outcomes]) => {
      const sorted = [...outcomes].sort(([, a], [, b]) => b - a);
      const total = sorted.reduce((sum, [, count]) => sum + count, 0);
      return `| ${kind} | ${total} | ${sorted.map(([outcome, count]) => `${outcome}: ${count}`).join(", ")} |`;
    }),
    "",
    "| audit | |",
    "|---|--:|",
    `| seed (LOAD_SEED) | ${seed} |`,
    `| kinds of fault injected, of ${faults.kinds} | ${faults.injected.size} |`,
    `| times that Redis froze | ${faults.counts.freezes} |`,
    `| times that a replica was killed | ${faults.counts.kills} |`,
    `| balances shown that existed during the request | ${truth.counts.balances - truth.counts.staleBalances - truth.counts.untoldBalances} |`,
    `| balances shown that a stale endpoint still had | ${truth.counts.staleBalances} |`,
    `| balances from before a reported collect, which a stale endpoint still had while Redis was away | ${truth.counts.untoldBalances} |`,
    `| histories whose transfers are all true | ${truth.counts.histories} |`,
    `| "nothing to collect", which was true during the request | ${truth.counts.nothings - truth.counts.staleNothings} |`,
    `| "nothing to collect", which a stale endpoint still had | ${truth.counts.staleNothings} |`,
    `| successes reported, each with its transaction and amounts | ${answers.successes} |`,
    `| transactions that collected | ${audited.transactions - audited.paidForNothing} |`,
    `| accounts in all transactions | ${audited.accountsCollected} |`,
    `| distributions of shared coins | ${audited.distributions} |`,
    `| transactions without effect because a stranger was emptied | ${audited.vainByStrangers} |`,
    `| transactions that the fee payer could not pay | ${audited.unpaid} |`,
    `| transactions that moved nothing, while replicas shared no lock | ${audited.paidForNothing} |`,
    `| transactions signed beside another, while replicas shared no lock | ${audited.signedBesideAnother} |`,
    `| "nothing was moved", none of which landed | ${answers.nothingMoved} |`,
    `| "no transaction was sent" | ${answers.nothingSent} |`,
    `| outcomes that were not known in time | ${answers.unknown} |`,
    `| lamports that left vaults and coins, and arrived | ${audited.collectedLamports} |`,
    `| lamports of fees and rents | ${audited.costsLamports} |`,
    `| heap of the first replica after each half, MB | ${heaps.map((heap) => toMegabytes(heap)).join(", ")} |`,
    `| resident memory of both replicas after each half, MB | ${memories.map((both) => both.map(({ resident }) => toMegabytes(resident)).join(" + ")).join(", ")} |`,
  ];
}

/**
 * Checks that every account can be collected once no fault is left. Half of the collects go to each
 * replica.
 */
async function collectTheRest(
  system: System,
  truth: Truth,
  callers: Callers,
  problems: Problems,
): Promise<void> {
  const giveUpAt = Date.now() + RECOVERY_MS;
  for (const account of system.accounts) system.addFees(account, MAX_FEES_LAMPORTS, "vault");
  for (const shared of system.sharedCoins) system.addSharedFees(shared, MAX_FEES_LAMPORTS, "coin");
  async function collectAll(account: SandboxAccount, replica: number): Promise<void> {
    for (;;) {
      const outcome = await callers.collect(account, replica);
      // A success may report a transaction that landed before the last fees arrived.
      if (truth.isNothing(account)) return;
      if (Date.now() > giveUpAt) {
        problems.add(
          "an account that cannot be collected any more",
          `${account.handle}: ${outcome}: ${lastMessageOf(callers, account)} ${lastSentOf(system, account)}`,
        );
        return;
      }
      await sleep(RETRY_MS);
    }
  }
  await Promise.all(
    system.accounts.map((account, i) => collectAll(account, i % system.replicas.length)),
  );
}

/** The message of an account's last failed collect. */
function lastMessageOf({ collects }: Callers, account: SandboxAccount): string {
  const last = collects.findLast((call) => call.account.id === account.id);
  return last?.answer.kind === "error" ? last.answer.message : "";
}

/** The account's last transactions: when they were sent, and what became of them. */
function lastSentOf({ sent, timeline, expiredAt }: System, account: SandboxAccount): string {
  const own = [...sent.values()].filter(({ accounts }) => accounts.includes(account)).slice(-3);
  return own
    .map(({ signature, blockhash, replica, at }) => {
      const landedAt = timeline.landedAt(signature);
      const end = landedAt ? `landed at ${landedAt}` : `expires at ${expiredAt(blockhash)}`;
      return `${signature} sent at ${at} by ${replica}, ${end}`;
    })
    .join("; ");
}

/** Simulates trading until `isOver`: adds fees to coins, to creator vaults and to AMM vaults. */
async function keepAddingFees(system: System, isOver: () => boolean): Promise<void> {
  const { accounts, sharedCoins, random } = system;
  for (let i = 0; !isOver(); i++) {
    await sleep(FEES_EVERY_MS);
    const place = (["amm", "coin", "vault", "coin"] as const)[i % 4]!;
    const lamports = 1 + random.below(MAX_FEES_LAMPORTS);
    if (system.isStill) continue;
    if (random.isChosen(SHARED_FEES))
      system.addSharedFees(random.pick(sharedCoins), lamports, place);
    else system.addFees(random.pickBusy(accounts), lamports, place);
  }
}

/**
 * Waits until at most `before` resources are active. Returns all active kinds if this takes over
 * RELEASE_MS.
 */
async function resourcesLeft(before: number): Promise<string[]> {
  const giveUpAt = performance.now() + RELEASE_MS;
  for (;;) {
    const kinds = process.getActiveResourcesInfo();
    if (kinds.length <= before) return [];
    if (performance.now() > giveUpAt) return kinds;
    await sleep(100);
  }
}

if (import.meta.main) {
  // Exit on a signal, because only an exit kills the replicas and Redis.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  const [mode = "60", transactions] = process.argv.slice(2);
  const seed = Number(process.env.LOAD_SEED ?? Date.now() % 2 ** 31);
  const blocks = Number(process.env.LOAD_STRANGERS ?? 0);
  const stopBusyLoops = startBusyLoops(Number(process.env.LOAD_BUSY ?? 0));
  const run = () => {
    if (mode === "never-landing")
      return runNeverLanding(seed, transactions ? Number(transactions) : undefined);
    const seconds = Number(mode);
    if (blocks > 0) return runStrangers({ seconds, seed, blocks });
    return runLoad({ seconds, seed, comparesHeaps: true });
  };
  const { lines, problems } = await run().finally(stopBusyLoops);
  console.log(lines.join("\n"));
  for (const problem of problems) console.error(problem);
  // Exit explicitly, because a leaked resource would keep the process alive.
  process.exit(problems.length > 0 ? 1 : 0);
}

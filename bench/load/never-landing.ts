import { setTimeout as sleep } from "node:timers/promises";
import { totalAtAddresses } from "./audit-ledger.ts";
import { audit } from "./audit.ts";
import { dropTransactions } from "./bad-nodes.ts";
import { createCallers } from "./callers.ts";
import { SLOTS_PAST_BLOCKHASH } from "./faults.ts";
import { createProblems } from "./problems.ts";
import { toMegabytes } from "./replica.ts";
import { startSystem } from "./system.ts";
import { createTruth } from "./truth.ts";
import { SAYS_NOTHING_MOVED } from "./wording.ts";

/**
 * As many transactions as the default budget allows in an hour: 50,000,000 lamports at 5,000 each.
 * A transaction that never lands costs nothing, but the budget counts it.
 */
const TRANSACTIONS = 10_000;
/** How often memory is measured. The first measurement is after the caches are full. */
const MEASUREMENTS = 6;
const MAX_GROWTH_BYTES = 8 * 1024 * 1024;
/** Enough fees to collect, in each account's vault. */
const FEES_LAMPORTS = 1_000_000;
const POLL_MS = 50;
/** Longer than any run, so that no collect times out on a slow machine. */
const NEVER_MS = "600000";

/**
 * Runs an hour's worth of transactions that never land, because all endpoints drop them. Collects
 * for all accounts at once, waits until each transaction has been sent twice, and then skips slots
 * until the blockhashes expire. Repeats this, and reports a problem if memory grows.
 */
export async function runNeverLanding(seed: number, transactions = TRANSACTIONS) {
  const problems = createProblems();
  const system = await startSystem(
    {
      FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000000",
      LOG_LEVEL: "info",
      RPC_TIMEOUT_MS: NEVER_MS,
      COLLECT_TIMEOUT_MS: NEVER_MS,
    },
    seed,
  );
  const { accounts, replicas, endpoints, sent, activity } = system;
  const callers = createCallers(system, createTruth(system, problems), problems);
  const rows: string[] = [];
  const heaps: number[][] = [];

  /**
   * Collects for every account once. Each transaction is sent twice before it expires.
   */
  async function collectAll(): Promise<void> {
    let [sentBefore, sendsBefore] = [sent.size, activity.sends];
    let waiting = accounts.length;
    const collects = accounts.map((account, i) =>
      callers.collect(account, i % replicas.length).finally(() => waiting--),
    );
    const areSentTwice = () => {
      const transactions = [...sent.values()].slice(sentBefore);
      const collected = transactions.reduce(
        (count, transaction) => count + transaction.accounts.length,
        0,
      );
      const sends = activity.sends - sendsBefore;
      return collected >= waiting && sends >= 2 * endpoints.length * transactions.length;
    };
    while (waiting > 0) {
      while (waiting > 0 && !areSentTwice()) await sleep(POLL_MS);
      [sentBefore, sendsBefore] = [sent.size, activity.sends];
      system.advanceSlots(SLOTS_PAST_BLOCKHASH);
    }
    await Promise.all(collects);
  }

  async function measure(): Promise<void> {
    const memories = await Promise.all(replicas.map((replica) => replica.memory()));
    heaps.push(memories.map(({ heap }) => heap));
    rows.push(
      `| ${sent.size} | ${activity.sends} | ${memories.map(({ heap }) => toMegabytes(heap, 1)).join(", ")} | ${memories.map(({ resident }) => toMegabytes(resident)).join(", ")} |`,
    );
  }

  try {
    for (const account of accounts) system.addFees(account, FEES_LAMPORTS, "vault");
    const totalBefore = totalAtAddresses(system);
    for (const endpoint of endpoints) endpoint.become(dropTransactions);
    while (sent.size < transactions) {
      await collectAll();
      if (sent.size >= (transactions * (heaps.length + 1)) / MEASUREMENTS) await measure();
    }
    await system.stopReplicas(problems);
    audit(system, callers.collects, totalBefore, problems);
    for (const { answer } of callers.collects)
      if (answer.kind !== "error" || !SAYS_NOTHING_MOVED.test(answer.message))
        problems.add("an answer that does not say that nothing was moved", JSON.stringify(answer));
    for (const [i, last] of heaps.at(-1)!.entries())
      if (last - heaps[0]![i]! > MAX_GROWTH_BYTES)
        problems.add("a heap that grew", `of replica ${i}`);
  } finally {
    await callers.close();
    await system.close();
  }
  return {
    lines: [
      "| transactions that never landed | sends | heap of each replica, MB | resident, MB |",
      "|--:|--:|--:|--:|",
      ...rows,
    ],
    problems: problems.lines(),
  };
}

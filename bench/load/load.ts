/**
 * A load test: lookups, GraphQL batches and collects from thousands of client addresses, while fees arrive in the
 * vaults and the upstreams fail in every way. Afterwards it audits the chain's ledger and checks the process for
 * leaks. `npm run load -- <seconds>` (default 60) exits with code 1 on any problem.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { request } from "undici";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { BOTH_ENDPOINTS, startWorld, type World } from "../../test/support/world.ts";
import { audit, totalAtAddresses } from "./audit.ts";
import { createCallers } from "./callers.ts";
import { createFaultSchedule } from "./faults.ts";

/** The number of concurrent callers of each kind. */
const CONCURRENCY = { lookup: 16, wallets: 4, collect: 40, collects: 8 } as const;
const MAX_FAULT_MS = 1_000;
const FEES_EVERY_MS = 20;
/** Random amounts up to this are from less than the collect minimum to far more. */
const MAX_FEES_LAMPORTS = 2_000_000;
/** The heap may grow by this in the second half, because the sandbox keeps its ledger. */
const MAX_HEAP_GROWTH_BYTES = 24 * 1024 * 1024;
/** How long closed resources may take to disappear. */
const RELEASE_MS = 20_000;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** The result of a run: lines of Markdown tables, and the problems, empty on success. */
export interface LoadResult {
  readonly lines: readonly string[];
  readonly problems: readonly string[];
}

/** Runs for `seconds`, then removes the faults, waits until no transaction is in flight, and audits. */
export async function runLoad(seconds: number): Promise<LoadResult> {
  const resourcesBefore = countResources();
  const world = await startWorld({
    SOLANA_RPC_URL: BOTH_ENDPOINTS,
    SOCIAL_CACHE_SECONDS: "2",
    SOCIAL_TIMEOUT_MS: "1000",
    RPC_TIMEOUT_MS: "1000",
    COLLECT_TIMEOUT_MS: "30000",
    FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000",
  });
  const accounts = world.sandbox.accounts.filter(({ suspended }) => !suspended);
  const totalBefore = totalAtAddresses(world);
  const callers = createCallers(world.url, accounts);
  const faults = createFaultSchedule(world);
  const faultMs = Math.min(MAX_FAULT_MS, (seconds * 1_000) / (1.5 * faults.count));

  async function runHalf(): Promise<number> {
    const endsAt = performance.now() + (seconds * 1_000) / 2;
    const isOver = () => performance.now() > endsAt;
    await Promise.all([
      ...(Object.keys(CONCURRENCY) as (keyof typeof CONCURRENCY)[]).flatMap((kind) =>
        Array.from({ length: CONCURRENCY[kind] }, () => callers.keepCalling(kind, isOver)),
      ),
      faults.run(faultMs, isOver),
      keepAddingFees(world, accounts, isOver),
    ]);
    await world.gateway.settled();
    world.forgetCalls();
    world.secondRpc.calls.length = 0;
    world.logLines.length = 0;
    collectGarbage();
    return process.memoryUsage().heapUsed;
  }

  const heaps = [await runHalf(), await runHalf()] as const;
  const audited = await audit(world, totalBefore, callers);
  const problems = [...callers.problems, ...audited.problems];
  if (callers.reported.length === 0) problems.push("no collect succeeded, so the run proves nothing");
  if (heaps[1] - heaps[0] > MAX_HEAP_GROWTH_BYTES)
    problems.push(`the heap grew: ${heaps.map(toMegabytes).join(", ")} MB`);
  const open = world.gateway.openSignatures();
  if (open.length > 0) problems.push(`transactions are still in flight: ${open.join()}`);

  await callers.close();
  await world.close();
  const left = await resourcesAbove(resourcesBefore);
  if (left.length > 0) problems.push(`not released: ${left.join(", ")}`);

  return {
    lines: [
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
      `| kinds of fault injected, of ${faults.count} | ${faults.injected()} |`,
      `| transactions that collected | ${audited.transactions} |`,
      `| successes reported, each with its transaction and amounts | ${callers.reported.length} |`,
      `| transactions reported as expired, none of which landed | ${callers.expiredSignatures.length} |`,
      `| lamports that left vaults, arrived and were counted | ${audited.collectedLamports} |`,
      `| lamports of fees, paid and counted | ${audited.feesLamports} |`,
      `| heap after each half, MB | ${heaps.map(toMegabytes).join(", ")} |`,
      `| sockets, servers and timers left | ${left.length} |`,
      `| problems | ${problems.length} |`,
    ],
    problems,
  };
}

/** Simulates trading: adds fees to accounts' vaults, every fourth time to the AMM's. */
async function keepAddingFees(
  { sandbox }: World,
  accounts: readonly SandboxAccount[],
  isOver: () => boolean,
) {
  for (let id = 0; !isOver(); id++) {
    const { address } = accounts[Math.floor(Math.random() * accounts.length)]!;
    const lamports = Math.ceil(Math.random() * MAX_FEES_LAMPORTS);
    const params = [address, lamports, ...(id % 4 === 0 ? ["amm"] : [])];
    const body = JSON.stringify({ jsonrpc: "2.0", id, method: "sandboxAddCreatorFees", params });
    const answer = await request(sandbox.rpc.url, { method: "POST", body, reset: true });
    const text = await answer.body.text();
    if (!text.includes('"result"')) throw new Error(`the sandbox added no fees: ${text}`);
    await sleep(FEES_EVERY_MS);
  }
}

/** The number of resources that keep the process alive, by kind. */
function countResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** The kinds with more resources than before, after up to RELEASE_MS. */
async function resourcesAbove(before: Map<string, number>): Promise<string[]> {
  const giveUpAt = performance.now() + RELEASE_MS;
  for (;;) {
    const now = countResources();
    const more = [...now].filter(([kind, count]) => count > (before.get(kind) ?? 0));
    if (more.length === 0 || performance.now() > giveUpAt)
      return more.map(([kind, count]) => `${count} ${kind}`);
    await sleep(100);
  }
}

function toMegabytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}

if (import.meta.main) {
  const { lines, problems } = await runLoad(Number(process.argv[2] ?? 60));
  console.log(lines.join("\n"));
  for (const problem of problems.slice(0, 50)) console.error(problem);
  // Exit explicitly, because a leaked resource would keep the process alive.
  process.exit(problems.length > 0 ? 1 : 0);
}

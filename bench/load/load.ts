/**
 * Everything at once, for a while: lookups, GraphQL batches and collects from thousands of addresses, new fees
 * in the vaults, and upstreams that fail in every way. Then the chain's ledger is audited, and what the
 * process still holds. `npm run load -- <seconds>`, 60 without, ends with code 1 when something does not add up.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { request } from "undici";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { BOTH_ENDPOINTS, startWorld, type World } from "../../test/support/world.ts";
import { audit, heldByAddresses } from "./audit.ts";
import { createCallers } from "./callers.ts";
import { createFailing } from "./faults.ts";

/** Callers at once, by what they do one time after another. */
const AT_ONCE = { lookup: 16, wallets: 4, collect: 40, collects: 8 } as const;
const LONGEST_FAULT_MS = 1_000;
const FEES_EVERY_MS = 20;
/** From less than is collected to far more. */
const MAX_FEES_LAMPORTS = 2_000_000;
/** What the second half may add to the heap: the sandbox keeps its ledger, and the garbage collector some more. */
const HEAP_SLACK_BYTES = 24 * 1024 * 1024;
const RESOURCES_WITHIN_MS = 20_000;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** What a run came to, as lines of Markdown tables, and all that was wrong: nothing, when all is well. */
export interface LoadResult {
  readonly lines: readonly string[];
  readonly problems: readonly string[];
}

/** Runs for `seconds`, then lifts the faults, waits until no transaction is under way, and audits. */
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
  const heldBefore = heldByAddresses(world);
  const callers = createCallers(world.url, accounts);
  const failing = createFailing(world);
  const faultMs = Math.min(LONGEST_FAULT_MS, (seconds * 1_000) / (1.5 * failing.count));

  async function runHalf(): Promise<number> {
    const endsAt = performance.now() + (seconds * 1_000) / 2;
    const isOver = () => performance.now() > endsAt;
    await Promise.all([
      ...(Object.keys(AT_ONCE) as (keyof typeof AT_ONCE)[]).flatMap((kind) =>
        Array.from({ length: AT_ONCE[kind] }, () => callers.keepCalling(kind, isOver)),
      ),
      failing.keepFailing(faultMs, isOver),
      keepPayingIn(world, accounts, isOver),
    ]);
    await world.gateway.settled();
    world.forgetCalls();
    world.secondRpc.calls.length = 0;
    world.logLines.length = 0;
    collectGarbage();
    return process.memoryUsage().heapUsed;
  }

  const heaps = [await runHalf(), await runHalf()] as const;
  const found = await audit(world, heldBefore, callers);
  const problems = [...callers.problems, ...found.problems];
  if (callers.told.length === 0) problems.push("no collect has succeeded: the run shows nothing");
  if (heaps[1] - heaps[0] > HEAP_SLACK_BYTES)
    problems.push(`the heap grew: ${heaps.map(toMegabytes).join(", ")} MB`);
  const open = world.gateway.openSignatures();
  if (open.length > 0) problems.push(`transactions are still under way: ${open.join()}`);

  await callers.close();
  await world.close();
  const left = await resourcesAbove(resourcesBefore);
  if (left.length > 0) problems.push(`not let go of: ${left.join(", ")}`);

  return {
    lines: [
      "| call | calls | answers |",
      "|---|--:|---|",
      ...[...callers.outcomes].map(([kind, outcomes]) => {
        const sorted = [...outcomes].sort(([, a], [, b]) => b - a);
        const total = sorted.reduce((sum, [, count]) => sum + count, 0);
        return `| ${kind} | ${total} | ${sorted.map(([outcome, count]) => `${outcome}: ${count}`).join(", ")} |`;
      }),
      "",
      "| audited | |",
      "|---|--:|",
      `| faults that were there, of ${failing.count} | ${failing.seen().length} |`,
      `| transactions that collected | ${found.transactions} |`,
      `| successes told, each with its transaction and amounts | ${callers.told.length} |`,
      `| transactions told to be dead, none of which landed | ${callers.deadSignatures.length} |`,
      `| lamports that left vaults, arrived, and were counted | ${found.collectedLamports} |`,
      `| lamports of fees, paid and counted | ${found.feesLamports} |`,
      `| heap after each half, MB | ${heaps.map(toMegabytes).join(", ")} |`,
      `| sockets, servers and timers left | ${left.length} |`,
      `| problems | ${problems.length} |`,
    ],
    problems,
  };
}

/** Trading goes on: pays fees into accounts' vaults, every fourth time into the AMM's. */
async function keepPayingIn({ sandbox }: World, accounts: readonly SandboxAccount[], isOver: () => boolean) {
  for (let id = 0; !isOver(); id++) {
    const { address } = accounts[Math.floor(Math.random() * accounts.length)]!;
    const lamports = Math.ceil(Math.random() * MAX_FEES_LAMPORTS);
    const params = [address, lamports, ...(id % 4 === 0 ? ["amm"] : [])];
    const body = JSON.stringify({ jsonrpc: "2.0", id, method: "sandboxAddCreatorFees", params });
    const answer = await request(sandbox.rpc.url, { method: "POST", body, reset: true });
    const text = await answer.body.text();
    if (!text.includes('"result"')) throw new Error(`the sandbox took no fees: ${text}`);
    await sleep(FEES_EVERY_MS);
  }
}

/** What keeps the process alive, by kind. */
function countResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** The kinds of which there are more than before, once what was closed has had time to go. */
async function resourcesAbove(before: Map<string, number>): Promise<string[]> {
  const giveUpAt = performance.now() + RESOURCES_WITHIN_MS;
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
  // Said, not left to happen: what has not been let go of would keep the process.
  process.exit(problems.length > 0 ? 1 : 0);
}

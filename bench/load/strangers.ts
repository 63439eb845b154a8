import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { newMint } from "../../test/support/new-mint.ts";
import { createProblems } from "./problems.ts";
import { MOST_SLOW_REDIS_MS } from "./faults.ts";
import { startSystem, type System } from "./system.ts";

/** How long a collect of the owner may take. */
const MOST_MS = 5_000;
/** The addresses of each IPv4 block, and the /64s of the /32 of IPv6. */
const ADDRESSES_PER_BLOCK = 3;
const IPV6_ADDRESSES = 50;
/** As many as a request may name. */
const COINS_PER_REQUEST = 10;
const COINS = 60;
/** The accounts that share these coins with the owner. */
const ACCOMPLICES = 8;
/** The fraction of requests that collect the owner's account; the others keep the configs busy. */
const OF_OWNER = 0.6;
const FEES_LAMPORTS = 1_000_000_000;
const FEES = BigInt(FEES_LAMPORTS);
const PAUSE_MS = 500;

interface Attack {
  readonly seconds: number;
  readonly seed: number;
  /** How many blocks of addresses the strangers have, besides one /32 of IPv6. */
  readonly blocks: number;
}

/**
 * Strangers of many blocks collect an account as often as they may, and always name coins whose
 * distribution moves nothing: first at one replica, then at both, over a slow Redis if the seed ends in 0.
 * Meanwhile the owner collects, without coins and with one. Reports a problem if a collect of the
 * owner fails or takes longer than MOST_MS.
 */
export async function runStrangers({ seconds, seed, blocks }: Attack) {
  const problems = createProblems();
  const rows: string[] = [];
  for (const replicas of [1, 2]) {
    const system = await startSystem({ FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000" }, seed);
    if (system.alternates) system.slowRedis.slowDown(MOST_SLOW_REDIS_MS);
    const agent = new Agent();
    try {
      const { outcomes, times } = await attack(system, agent, replicas);
      const counts = [...outcomes].map(([outcome, count]) => `${outcome}: ${count}`).join(", ");
      const sorted = times.toSorted((a, b) => a - b).map(Math.round);
      rows.push(
        `| ${replicas} | ${counts} | ${sorted.length} | ${sorted[sorted.length >> 1]} | ${sorted.at(-1)} |`,
      );
      system.slowRedis.slowDown(0);
      await system.stopReplicas(problems);
    } finally {
      await agent.close();
      await system.close();
    }
  }

  async function attack(system: System, agent: Agent, replicas: number) {
    const { sandbox, accounts, random } = system;
    const { chain, coins } = sandbox;
    const [owner, ...accomplices] = accounts
      .filter(({ address }) => chain.balance(address) >= chain.rentExemptMinimum(0))
      .slice(0, ACCOMPLICES + 1) as [SandboxAccount, ...SandboxAccount[]];
    const failing = Array.from({ length: COINS }, () => {
      const mint = newMint();
      const shareholders = [owner, ...accomplices].map(({ address }) => ({ address, bps: 1_111 }));
      // An address without lamports, which cannot receive so little: the platform pays nobody.
      shareholders.push({ address: newMint(), bps: 1 });
      coins.launch({ mint, creator: mint, shareholders, fees: FEES });
      return mint;
    });
    const outcomes = new Map<string, number>();
    const times: number[] = [];
    const endsAt = Date.now() + seconds * 1_000;
    const isOver = () => Date.now() > endsAt;

    async function collect(replica: number, from: string, { id }: SandboxAccount, mints: string[]) {
      const answer = await request(`${system.replicas[replica % replicas]!.url}/collect`, {
        dispatcher: agent,
        method: "POST",
        headers: { "content-type": "application/json", "x-forwarded-for": from },
        body: JSON.stringify({ socialId: id, mints }),
      });
      const body = (await answer.body.json()) as { success: boolean; error?: string };
      return { ...body, retryAfter: Number(answer.headers["retry-after"] ?? 0) };
    }

    /** Sends requests from one address, as many as its limit allows. */
    async function keepNaming(address: string): Promise<void> {
      while (!isOver()) {
        const account = random.isChosen(OF_OWNER) ? owner : random.pick(accomplices);
        const first = random.below(COINS - COINS_PER_REQUEST + 1);
        const mints = failing.slice(first, first + COINS_PER_REQUEST);
        const { error = "200", retryAfter } = await collect(
          random.below(2),
          address,
          account,
          mints,
        );
        outcomes.set(error, (outcomes.get(error) ?? 0) + 1);
        const leftMs = Math.max(0, endsAt - Date.now());
        if (error === "RATE_LIMITED") await sleep(Math.min(leftMs, 1_000 * retryAfter));
      }
    }

    /** The owner's collects, at each replica in turn. */
    async function keepCollecting(): Promise<void> {
      for (let i = 0; !isOver(); i++) {
        const mint = newMint();
        coins.launch({ mint, creator: owner.address, fees: FEES });
        system.addFees(owner, FEES_LAMPORTS, "vault");
        await sleep(PAUSE_MS);
        for (const mints of [[], [mint]]) {
          const kind = mints.length > 0 ? "a collect with a coin" : "a plain collect";
          const startedAt = performance.now();
          const { success, error } = await collect(i, `203.0.${i >> 8}.${i & 255}`, owner, mints);
          const ms = performance.now() - startedAt;
          times.push(ms);
          // A stranger's collect may have emptied the vault.
          const isDone = success || (mints.length === 0 && error === "NOTHING_TO_COLLECT");
          const detail = `${Math.round(ms)} ms, ${replicas} replicas: ${error ?? "200"}`;
          if (!isDone) problems.add(`${kind} of the owner that fails`, detail);
          else if (ms > MOST_MS) problems.add(`${kind} of the owner that is late`, detail);
        }
      }
    }

    const addresses = [
      ...Array.from(
        { length: blocks * ADDRESSES_PER_BLOCK },
        (_, i) => `198.18.${i % blocks}.${i}`,
      ),
      ...Array.from({ length: IPV6_ADDRESSES }, (_, i) => `2001:db8:${i.toString(16)}::1`),
    ];
    await Promise.all([...addresses.map(keepNaming), keepCollecting()]);
    if (times.length === 0) problems.add("no collect of the owner", `${replicas} replicas`);
    return { outcomes, times };
  }

  return {
    lines: [
      "| replicas | strangers' collects | the owner's | median, ms | longest, ms |",
      "|--:|---|--:|--:|--:|",
      ...rows,
    ],
    problems: problems.lines(),
  };
}

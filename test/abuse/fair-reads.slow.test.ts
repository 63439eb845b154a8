import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLogger } from "../../src/observability/log.ts";
import { createAccountLookup } from "../../src/social/account-lookup.ts";
import { NO_PROFILE } from "../../src/social/profile.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { createReadLedger } from "../../src/social/read-ledger.ts";
import type { Redis } from "../../src/upstream/redis.ts";
import { describeWithRedis, eachWithRedis, isBack } from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { createSimulation, social } from "../support/simulated-lookups.ts";

const SECOND = 1_000;
const HOUR_SECONDS = 3_600;
const LINK_VIEWS = 5_000;
const CREATOR = "1523400000000000123";

/** Lets requests and their batches go on, and calls be answered, in real turns of the event loop and simulated time. */
async function passTime(ms: number): Promise<void> {
  await setImmediate();
  await vi.advanceTimersByTimeAsync(ms);
  await setImmediate();
}

describe("in simulated time", () => {
  beforeEach(() => {
    const toFake = ["setTimeout", "clearTimeout", "Date", "performance"] as const;
    vi.useFakeTimers({ toFake: [...toFake] });
    vi.advanceTimersByTime(1);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("a visitor's handles are found right after five blocks have requested 6,000 handles each", async () => {
    const { newCaller, meter } = createSimulation();
    const attackers = Array.from({ length: 5 }, (_, i) => newCaller(`attacker${i}`));
    for (let i = 0; i < 60; i++) {
      for (const attacker of attackers) void attacker.request(100);
      await passTime(3 * SECOND);
    }
    const visitor = newCaller("visitor");
    void visitor.request(3);
    for (let i = 0; i < 5; i++) await passTime(SECOND);
    expect(visitor.counts).toEqual({ found: 3 });
    expect(meter.charged).toBeLessThan(0.15 * social.readsPerHour);
  });

  it("the same 100 ids, requested again and again from five blocks, cost 100 accounts", async () => {
    const { newCaller, meter } = createSimulation();
    const ids = Array.from({ length: 100 }, (_, i) => String(i + 1));
    const attackers = Array.from({ length: 5 }, (_, i) => newCaller(`attacker${i}`));
    for (let i = 0; i < 20; i++) {
      for (const attacker of attackers) void attacker.requestByIds(ids);
      await passTime(SECOND);
    }
    expect(attackers.map(({ counts }) => counts)).toEqual(Array(5).fill({ found: 2_000 }));
    expect(meter.charged).toBe(100);
  });

  it("5,000 views of a share link in an hour, each a query and a subscription, cost 13 accounts", async () => {
    const { newCaller, meter } = createSimulation();
    const visitors = Array.from({ length: LINK_VIEWS }, (_, i) => newCaller(`visitor${i}`));
    for (const [i, visitor] of visitors.entries()) {
      void visitor.requestByIds([CREATOR]);
      void visitor.requestByIds([CREATOR]);
      if (i % 10 === 9) await passTime((10 * HOUR_SECONDS * SECOND) / LINK_VIEWS);
    }
    expect(new Set(visitors.map(({ counts }) => counts.found))).toEqual(new Set([2]));
    expect(meter.charged).toBeLessThanOrEqual(13);
  });

  it("a lone block that always asks gets 4,000 accounts at most in its first hour, and then 2,000 an hour", () => {
    const ledger = createReadLedger();
    const limits = [social.readsPerHour, 3 * social.readsPerHour] as const;
    const names = Array<boolean>(100).fill(true);
    const hours = [0, 0, 0].map(() => {
      let got = 0;
      for (let time = 0; time < HOUR_SECONDS; time++) {
        got += ledger.reserve(limits, ["attacker"], names).fits.filter(Boolean).length;
        vi.advanceTimersByTime(SECOND);
      }
      return got;
    });
    // Its reads count 2,000 at most, and at most 2,000 an hour decay. One more is allowed while they count a bit less.
    const [first, ...later] = hours as [number, ...number[]];
    expect(first).toBeLessThanOrEqual(4_000);
    expect(first).toBeGreaterThan(0.9 * 4_000);
    for (const got of later) {
      expect(got).toBeLessThanOrEqual(2_001);
      expect(got).toBeGreaterThan(0.9 * 2_000);
    }
  });

  it("callers who have left before their lookups start cause no read", async () => {
    const { newCaller, meter } = createSimulation();
    for (let i = 0; i < 30; i++) void newCaller(`gone${i}`, AbortSignal.abort()).request(1);
    await passTime(SECOND);
    expect(meter).toEqual({ calls: 0, charged: 0 });
  });
});

describeWithRedis("on replicas that share a Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  eachWithRedis((...started) => {
    [server, redis] = started;
  });

  it("5,000 views of a share link in an hour, each a query and a subscription, cost one account", async () => {
    // So few that time hardly refills what is used.
    const needs = { ...social, readsPerHour: 130, redis, log: createLogger("silent") };
    let calls = 0;
    const client = {
      turn: () => undefined,
      findByHandles: () => Promise.reject(new Error("must not be called by handle")),
      findByIds: (ids: readonly string[]) => {
        calls++;
        return Promise.resolve(
          new Map(ids.map((id) => [id, { id, handle: "creator", profile: NO_PROFILE }] as const)),
        );
      },
    };
    const budgets = [createReadBudget(needs), createReadBudget(needs)];
    // The entry expires every five minutes.
    const expiries = 13;
    for (let i = 0; i < expiries; i++) {
      const replicas = budgets.map((budget) => createAccountLookup({ ...needs, client, budget }));
      for (let view = 0; view < LINK_VIEWS / expiries; view++) {
        const caller = { signal: new AbortController().signal, addressBlock: `${i}.${view}` };
        const found = await Promise.all(replicas.map((replica) => replica.findByIds([CREATOR], caller)));
        expect(found).toEqual(Array(2).fill([expect.objectContaining({ id: CREATOR })]));
      }
      await isBack(redis);
      await server.command("DEL", `tributary:v2:account-by-id:{${social.apiUrl.host}}:${CREATOR}`);
    }
    expect(calls).toBeLessThanOrEqual(2 * expiries);
    const used = `tributary:v2:reads:{${social.apiUrl.host}}:used`;
    expect(Math.ceil(Number(await server.command("HGET", used, "charged")))).toBe(1);
  });
});

describe("SECURITY.md", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const page = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
  const STEP_SECONDS = 5;
  const BURST_EVERY_SECONDS = 600;
  const RETRY_SECONDS = 30;
  const COUNTS_OF_BLOCKS = [5, 50, 250, 500];

  /**
   * An hour of the rule at the default settings. `attackers` blocks request more names than they can get: all the time,
   * or for ten seconds in every ten minutes. Right after them come honest callers: a person every ten seconds, who asks
   * once for three names, five bots with 200 names and an indexer with 5,000, who ask again for what they did not get.
   * Returns what each person got, the parts of their names that each kind got, and what all together were charged.
   */
  function simulate(attackers: number, { isInBursts = false, areHonestCallersHere = true } = {}) {
    const ledger = createReadLedger();
    const limits = [social.readsPerHour, 3 * social.readsPerHour] as const;
    let charged = 0;
    const ask = (block: string, names: number): number => {
      const { fits } = ledger.reserve(limits, [block], Array<boolean>(names).fill(true));
      const got = fits.filter(Boolean).length;
      charged += got;
      return got;
    };
    const blocks = Array.from({ length: attackers }, (_, i) => `attacker${i}`);
    const people: number[] = [];
    const bots = Array.from({ length: 5 }, (_, i) => ({ block: `bot${i}`, from: 600 * i, missing: 200 }));
    const indexer = { block: "indexer", from: 0, missing: 5_000 };
    for (let time = 0; time < HOUR_SECONDS; time += STEP_SECONDS) {
      // Each time another of them is first.
      const first = (time / STEP_SECONDS) % attackers;
      const order = [...blocks.slice(first), ...blocks.slice(0, first)];
      const isAttack = !isInBursts || time % BURST_EVERY_SECONDS < 10;
      for (const block of isAttack ? order : []) ask(block, time === 0 ? 400 : 20);
      if (areHonestCallersHere && time % 10 === 0) people.push(ask(`person${time}`, 3));
      for (const caller of areHonestCallersHere ? [...bots, indexer] : []) {
        if (time < caller.from || (time - caller.from) % RETRY_SECONDS > 0) continue;
        caller.missing -= ask(caller.block, Math.min(caller.missing, 400));
      }
      vi.advanceTimersByTime(STEP_SECONDS * SECOND);
    }
    const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
    const parts = [
      sum(people) / (3 * people.length),
      1 - sum(bots.map(({ missing }) => missing)) / (200 * bots.length),
      1 - indexer.missing / 5_000,
    ];
    return { people, parts, charged };
  }

  /** The numbers in the row that starts with this text. */
  const numbersIn = (start: string) =>
    page
      .split("\n")
      .find((line) => line.startsWith(start))
      ?.match(/\d[\d,]*%?/g);

  it("states who is still served beside attacking blocks: beside 50, every person", () => {
    const results = COUNTS_OF_BLOCKS.flatMap((attackers) => [
      simulate(attackers),
      simulate(attackers, { isInBursts: true }),
    ]);
    for (const { people } of results.slice(0, 4)) expect(new Set(people)).toEqual(new Set([3]));
    for (const { charged } of results) expect(charged).toBeLessThanOrEqual(social.readsPerHour);
    const percents = ({ parts }: { parts: readonly number[] }) =>
      parts.map((part) => `${Math.floor(part * 100)}%`);
    expect(numbersIn("| Blocks |")).toEqual(["3", "200", "5,000"]);
    expect(COUNTS_OF_BLOCKS.map((attackers) => numbersIn(`| ${attackers} |`))).toEqual(
      COUNTS_OF_BLOCKS.map((attackers, i) => {
        const [always, inBursts] = [percents(results[2 * i]!), percents(results[2 * i + 1]!)];
        return [String(attackers), ...always.flatMap((percent, kind) => [percent, inBursts[kind]!])];
      }),
    );
  });

  it("states what attackers in 1, 9 and 1,000 blocks can make the network charge in an hour", () => {
    const charged = [1, 9, 1_000].map(
      (attackers) => simulate(attackers, { areHonestCallersHere: false }).charged,
    );
    for (const count of charged) expect(count).toBeLessThanOrEqual(social.readsPerHour);
    // The hour's refill, and a quarter of the bucket: in the end the reads of each of nine count 970, so they get it
    // while it is fuller than 74%. Those of each of 1,000 count 9.
    expect(charged[1]).toBeGreaterThan(((12 + 1 / 4) / 13) * social.readsPerHour);
    expect(charged[2]).toBeGreaterThan(0.95 * social.readsPerHour);
    const limit = social.readsPerHour;
    const dollars = [charged[0]!, limit, limit].map((accounts) => String(Math.ceil(accounts / 100)));
    expect(numbersIn("| Charges:")).toEqual(dollars);
  });
});

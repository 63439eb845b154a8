import { expect, it } from "vitest";
import { createFeeBudget } from "../../../src/chain/collect/fee-budget.ts";
import { toLamports } from "../../../src/chain/lamports.ts";
import type { Redis } from "../../../src/upstream/redis.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import type { RedisServer } from "../../support/redis-server.ts";

let server: RedisServer;
let redis: Redis;
const replica = () =>
  createFeeBudget({ feePayer: "payer", budgetLamportsPerHour: toLamports(20_000), redis });
const spentLamports = async () => {
  const entries: string[] = await server.command("HGETALL", "tributary:v2:fees:payer");
  return entries.filter((_, i) => i % 2).reduce((sum, lamports) => sum + Number(lamports), 0);
};

describeWithRedis("the fee budget in Redis", () => {
  eachWithRedis((newServer, newRedis) => {
    server = newServer;
    redis = newRedis;
  });

  it("is shared by all replicas, even under concurrency", async () => {
    const replicas = [replica(), replica()];
    const reservations = await Promise.all(
      Array.from({ length: 20 }, (_, i) => replicas[i % 2]!.reserve(toLamports(5_000))),
    );
    expect(reservations.filter((reservation) => reservation)).toHaveLength(4);
    expect(await spentLamports()).toBe(20_000);
  });

  it("does not count released or refused fees", async () => {
    const [one, other] = [replica(), replica()];
    const first = await one.reserve(toLamports(15_000));
    expect(await other.reserve(toLamports(10_000))).toBeUndefined();
    first!.release();
    expect(await other.reserve(toLamports(20_000))).toBeDefined();
    expect(await one.reserve(toLamports(1))).toBeUndefined();
    expect(await spentLamports()).toBe(20_000);
  });

  it("ignores fees that are older than an hour", async () => {
    const minute = Math.floor((await server.command("TIME"))[0] / 60);
    await server.command("HSET", "tributary:v2:fees:payer", minute - 60, 15_000, minute - 61, 20_000);
    expect(await replica().reserve(toLamports(5_001))).toBeUndefined();
    expect(await replica().reserve(toLamports(5_000))).toBeDefined();
  });

  it("applies to each replica separately while Redis is down, including what it spent before", async () => {
    const [one, other] = [replica(), replica()];
    await one.reserve(toLamports(15_000));
    await server.stop();
    expect(await one.reserve(toLamports(5_001))).toBeUndefined();
    expect(await one.reserve(toLamports(5_000))).toBeDefined();
    expect(await other.reserve(toLamports(20_000))).toBeDefined();
  });
});

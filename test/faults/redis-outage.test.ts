import { afterEach, beforeEach, expect, it } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startReplicas, type Reply } from "../support/replicas.ts";

let redis: RedisServer;
let replicas: Awaited<ReturnType<typeof startReplicas>>;

beforeEach(async () => {
  redis = await startRedis();
  replicas = await startReplicas(redis.url);
});
afterEach(async () => {
  await replicas.close();
  await redis.stop();
});

/** What both replicas say of Redis in their metrics. */
const redisUp = async () => {
  const replies = await Promise.all([0, 1].map((replica) => replicas.request(replica, "/metrics")));
  return replies.map(({ body }) => Number(/^tributary_redis_up (\d)$/m.exec(body)?.[1]));
};
const isBack = () => expect.poll(redisUp, { timeout: 10_000 }).toEqual([1, 1]);
const isAway = () => expect.poll(redisUp, { timeout: 10_000 }).toEqual([0, 0]);
const passed = (replies: readonly Reply[]) => replies.filter(({ status }) => status === 200).length;
const fromOneAddress = (address: string) =>
  Promise.all(Array.from({ length: 100 }, (_, i) => replicas.lookup(i, "creator", address)));

describeWithRedis("Redis that goes away and comes back under load", () => {
  it("costs no request its answer, and no account a second transaction", async () => {
    let isLoading = true;
    const lookups: Reply[] = [];
    const collects: Reply[] = [];
    let collected = 0;
    const { accounts, chain } = replicas.sandbox;
    const withFees = accounts.filter(({ creatorVault }) => chain.balance(creatorVault) > 100_000_000n);
    const load = async (replica: number) => {
      for (let i = 0; isLoading; i++) {
        const handle = `artist${String((i % 150) + 1).padStart(3, "0")}`;
        lookups.push(await replicas.lookup(replica, handle));
        if (i % 5 === 0 && collected < withFees.length) {
          const { handle } = withFees[collected++]!;
          const both = [replicas.collect(replica, handle), replicas.collect(replica, handle)];
          collects.push(...(await Promise.all(both)));
        }
      }
    };
    const loads = [0, 1, 0, 1].map(load);
    const more = () => {
      const count = lookups.length;
      return expect.poll(() => lookups.length, { timeout: 20_000 }).toBeGreaterThan(count + 40);
    };

    await more();
    redis.freeze();
    await isAway();
    await more();
    redis.thaw();
    await isBack();
    await more();
    await redis.stop();
    await isAway();
    await more();
    await redis.start();
    await isBack();
    await more();
    isLoading = false;
    await Promise.all(loads);

    expect(lookups.filter(({ status }) => status !== 200)).toEqual([]);
    expect(collects.filter(({ status }) => status !== 200).map(({ body }) => body)).toEqual([]);
    expect(replicas.landedCollects()).toHaveLength(collected);
    for (const { output } of replicas.programs) {
      expect(output().match(/Redis is away/g)).toHaveLength(2);
      expect(output().match(/Redis is there/g)).toHaveLength(3);
    }
  });
});

describeWithRedis("while Redis is away", () => {
  beforeEach(async () => {
    await redis.stop();
    await isAway();
  });

  it("each replica holds callers to the limit by itself; when it is back both do together", async () => {
    expect(passed(await fromOneAddress("192.0.2.1"))).toBe(40);
    await redis.start();
    await isBack();
    expect(passed(await fromOneAddress("192.0.2.2"))).toBe(20);
  });

  it("collects go on, with each process's own lock", async () => {
    const replies = await Promise.all(Array.from({ length: 10 }, () => replicas.collect(0, "creator")));
    expect(passed(replies)).toBe(10);
    expect(replicas.landedCollects()).toHaveLength(1);
  });

  it("two replicas that collect one account at once move its fees once, and waste one fee", async () => {
    const { rpc, chain, accounts } = replicas.sandbox;
    const isBlockhash = ({ method }: { method: string }) => method === "getLatestBlockhash";
    const lift = rpc.faults.add({ when: isBlockhash, delayMs: 3_000 });
    const slow = replicas.collect(0, "creator");
    await expect.poll(() => rpc.calls.some(isBlockhash), { timeout: 10_000 }).toBe(true);
    lift();
    expect((await replicas.collect(1, "creator")).body).toMatchObject({ collected: "3.1000" });
    expect((await slow).body).toMatchObject({ error: "NOTHING_TO_COLLECT", collected: "0.0000" });
    const { address } = accounts.find(({ handle }) => handle === "creator")!;
    expect(chain.balance(address)).toBe(8_300_000_000n);
    expect(replicas.landedCollects()).toHaveLength(2);
  });
});

describeWithRedis("a collect whose claim is in Redis", () => {
  it("is not reported a second time by a Redis that could not be told of its end", async () => {
    const { rpc, chain, accounts } = replicas.sandbox;
    const { creatorVault } = accounts.find(({ handle }) => handle === "creator")!;
    const lift = rpc.faults.add({ when: ({ method }) => method === "getSignatureStatuses", then: "reset" });
    const collect = replicas.collect(0, "creator");
    await expect.poll(replicas.landedCollects, { timeout: 10_000 }).toHaveLength(1);
    await redis.command("CONFIG", "SET", "maxmemory", 1);
    lift();
    expect((await collect).body).toMatchObject({ success: true, collected: "3.1000" });
    for (const replica of [1, 0, 1]) {
      chain.setBalance(creatorVault, chain.balance(creatorVault) + 500_000_000n);
      expect((await replicas.collect(replica, "creator")).body.collected).toBe("0.5000");
    }
    await redis.command("CONFIG", "SET", "maxmemory", 0);
    await isBack();
    expect((await replicas.collect(1, "creator")).body.error).toBe("NOTHING_TO_COLLECT");
  });

  it("ends it there, though Redis was away when it landed", async () => {
    const lift = replicas.sandbox.rpc.faults.add({
      when: ({ method }) => method === "getSignatureStatuses",
      then: "reset",
    });
    const collect = replicas.collect(0, "creator");
    await expect.poll(replicas.landedCollects, { timeout: 10_000 }).toHaveLength(1);
    redis.freeze();
    await replicas.lookup(0, "creator");
    await replicas.lookup(1, "creator");
    await isAway();
    lift();
    expect((await collect).body).toMatchObject({ success: true, collected: "3.1000" });
    redis.thaw();
    await isBack();
    expect((await replicas.collect(1, "creator")).body.error).toBe("NOTHING_TO_COLLECT");
    expect(replicas.landedCollects()).toHaveLength(1);
  });
});

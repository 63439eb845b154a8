import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createAccountLocks } from "../../../src/chain/collect/account-lock.ts";
import type { Redis } from "../../../src/upstream/redis.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import type { RedisServer } from "../../support/redis-server.ts";

const transaction = { base64: "AQID", signature: "sig", lastValidBlockHeight: 150 };
const KEY = "tributary:collect:payer:address";
const NOTHING = { text: "return 1", answer: z.int() };
const never = () => false;

describe("an account's lock without Redis", () => {
  it("is always acquired", async () => {
    const locks = createAccountLocks({ feePayer: "payer", redis: undefined });
    for (let i = 0; i < 2; i++) {
      const lease = await locks.acquire("address", never);
      expect([lease.openTransaction, lease.landedSlot, await lease.store(transaction)]).toEqual([
        undefined,
        0,
        true,
      ]);
    }
  });
});

let server: RedisServer;
let redis: Redis;

describeWithRedis("an account's lock in Redis", () => {
  eachWithRedis((...started) => {
    [server, redis] = started;
  });
  const acquire = (hasGivenUp = never) =>
    createAccountLocks({ feePayer: "payer", redis }).acquire("address", hasGivenUp);
  /** Resolves once a second replica has asked for the lock and found it taken. */
  const secondIsWaiting = () => expect.poll(() => server.command("HGET", KEY, "asked")).toBe("1");
  const redisIsBack = () => expect.poll(() => redis.run(NOTHING, [], [])).toBe(1);

  it("is held by one at a time: the next waits until it is released", async () => {
    const first = await acquire();
    let hasSecond = false;
    const second = acquire().then((lease) => {
      hasSecond = true;
      return lease;
    });
    await secondIsWaiting();
    expect(hasSecond).toBe(false);
    first.release();
    expect((await second).openTransaction).toBeUndefined();
  });

  it("is waited for no longer than its caller waits", async () => {
    await acquire();
    let polls = 0;
    await expect(acquire(() => ++polls > 2)).rejects.toMatchObject({
      failure: { kind: "lease-not-acquired" },
    });
  });

  it("expires while nothing is signed, and not for a week when something is", async () => {
    const first = await acquire();
    const ttl = await server.command("PTTL", KEY);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(15_000);
    await first.store(transaction);
    expect(await server.command("PTTL", KEY)).toBeGreaterThan(6 * 24 * 3_600_000);
  });

  it("shows its signed transaction to everyone, however late they ask", async () => {
    const first = await acquire();
    expect(await first.store(transaction)).toBe(true);
    expect((await acquire()).openTransaction).toEqual(transaction);
    expect((await acquire()).openTransaction).toEqual(transaction);
  });

  it("shows its transaction to a replica that waited for it, even after its outcome is known", async () => {
    const first = await acquire();
    const second = acquire();
    await secondIsWaiting();
    await first.store(transaction);
    first.release(42);
    expect((await second).openTransaction).toEqual(transaction);
  });

  it("is free once the outcome is known, and the next holder knows the slot", async () => {
    const first = await acquire();
    await first.store(transaction);
    first.release(42);
    const second = await acquire();
    expect([second.openTransaction, second.landedSlot]).toEqual([undefined, 42]);
    second.release();
    const third = await acquire();
    await third.store(transaction);
    third.release(41); // As a slow follower of an earlier transaction would.
    expect((await acquire()).landedSlot).toBe(42);
    expect(await server.command("PTTL", "tributary:landed:payer:address")).toBeLessThanOrEqual(60_000);
  });

  it("can be released by any replica that knows the outcome of its transaction", async () => {
    await (await acquire()).store(transaction);
    (await acquire()).release();
    expect((await acquire()).openTransaction).toBeUndefined();
  });

  it("that has expired forbids sending once another replica has acquired it", async () => {
    const slow = await acquire();
    await server.command("DEL", KEY);
    const next = await acquire();
    expect(await slow.store(transaction)).toBe(false);
    slow.release();
    expect(await next.store({ ...transaction, signature: "next" })).toBe(true);
    expect((await acquire()).openTransaction?.signature).toBe("next");
  });

  it("that has expired still stores a transaction while no other replica has acquired it", async () => {
    const slow = await acquire();
    await server.command("DEL", KEY);
    expect(await slow.store(transaction)).toBe(true);
    expect((await acquire()).openTransaction).toEqual(transaction);
  });

  it("that cannot be read fails one collect, and not the next", async () => {
    await server.command("HSET", KEY, "token", "t", "transaction", "{");
    await expect(acquire()).rejects.toMatchObject({ failure: { kind: "stored-transaction-unreadable" } });
    expect((await acquire()).openTransaction).toBeUndefined();
  });

  it("is released even when 10,000 other releases wait while Redis is away", async () => {
    const first = await acquire();
    await first.store(transaction);
    server.freeze();
    first.release(42);
    const others = createAccountLocks({ feePayer: "payer", redis });
    for (let i = 0; i < 10_001; i++) (await others.acquire(`other${i}`, never)).release();
    server.thaw();
    await redisIsBack();
    expect((await acquire()).openTransaction).toBeUndefined();
  });

  it("is acquired while Redis is away, and released when Redis is back", async () => {
    server.freeze();
    const first = await acquire();
    expect([first.openTransaction, await first.store(transaction)]).toEqual([undefined, true]);
    first.release();
    server.thaw();
    await redisIsBack();
    expect((await acquire()).openTransaction).toBeUndefined();
  });
});

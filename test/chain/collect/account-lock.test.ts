import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { createAccountLocks } from "../../../src/chain/collect/locks/account-lock.ts";
import type { Redis } from "../../../src/store/redis.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import type { RedisServer } from "../../support/redis-server.ts";

const transaction = { base64: "AQID", signature: "sig", lastValidBlockHeight: 150 };
const KEY = "tributary:v2:collect:{payer:address}";
const PING = { text: "return 1", answer: z.int() };

describe("an account's lock without Redis", () => {
  it("is always acquired", async () => {
    const locks = createAccountLocks({ feePayer: "payer", redis: undefined });
    for (let i = 0; i < 2; i++) {
      const lease = await locks.acquire("address", Infinity);
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
  eachWithRedis((newServer, newRedis) => {
    server = newServer;
    redis = newRedis;
  });
  const acquire = (endsAt = Infinity) =>
    createAccountLocks({ feePayer: "payer", redis }).acquire("address", endsAt);
  const expire = () => server.command("DEL", KEY);
  /** Resolves when a second replica has requested the lock while it is held. */
  const secondReplicaWaits = () => expect.poll(() => server.command("HGET", KEY, "asked")).toBe("1");
  const redisIsUp = () => expect.poll(() => redis.run(PING, [], [])).toBe(1);

  it("has one holder at a time, and the next waits until it is released", async () => {
    const first = await acquire();
    let hasSecond = false;
    const second = acquire().then((lease) => {
      hasSecond = true;
      return lease;
    });
    await secondReplicaWaits();
    expect(hasSecond).toBe(false);
    first.release();
    expect((await second).openTransaction).toBeUndefined();
  });

  it("is free after its holder withdraws the stored transaction", async () => {
    const first = await acquire();
    await first.store(transaction);
    expect(await first.withdraw()).toBe(true);
    expect((await acquire()).openTransaction).toBeUndefined();
  });

  it("keeps a stored transaction that another replica may have received", async () => {
    const first = await acquire();
    const second = acquire();
    await secondReplicaWaits();
    await first.store({ ...transaction, isShared: true });
    expect(await first.withdraw()).toBe(false);
    expect((await second).openTransaction).toEqual({ ...transaction, isShared: true });
  });

  it("is waited for only until the deadline", async () => {
    await acquire();
    await expect(acquire(performance.now())).rejects.toMatchObject({
      failure: { kind: "lease-not-acquired" },
    });
  });

  describe("is renewed", () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    });
    afterEach(() => {
      vi.useRealTimers();
    });
    const holdByAnother = () => server.command("HSET", KEY, "token", "another");
    /** Whether the next renewal shortens the lock's time to live. */
    async function isRenewed(): Promise<boolean> {
      await server.command("PEXPIRE", KEY, 100_000);
      vi.advanceTimersByTime(5_000);
      await redis.run(PING, [], []);
      return (await server.command("PTTL", KEY)) <= 15_000;
    }

    it("every 5 seconds while its holder prepares a transaction", async () => {
      await acquire();
      for (let i = 0; i < 2; i++) expect(await isRenewed()).toBe(true);
    });

    it("no longer once it stores a transaction, is released, or has another holder", async () => {
      const first = await acquire();
      await first.store(transaction);
      expect(await isRenewed()).toBe(false);
      first.release();

      await acquire();
      await holdByAnother();
      expect(await isRenewed()).toBe(false);
      await expire();

      const third = await acquire();
      third.release();
      await holdByAnother();
      expect(await isRenewed()).toBe(false);
    });
  });

  it("expires within 15 seconds before a transaction is stored, and after a week with one", async () => {
    const first = await acquire();
    const ttl = await server.command("PTTL", KEY);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(15_000);
    await first.store(transaction);
    expect(await server.command("PTTL", KEY)).toBeGreaterThan(6 * 24 * 3_600_000);
  });

  it("gives its signed transaction to every replica that acquires it later", async () => {
    const first = await acquire();
    expect(await first.store(transaction)).toBe(true);
    for (let i = 0; i < 2; i++)
      expect(await acquire()).toMatchObject({ openTransaction: transaction, isEarlier: true });
  });

  it.each([
    ["in a known slot", 42],
    ["in an unknown slot", 0],
  ])("gives its transaction to a replica that was waiting, even after it has landed %s", async (_, slot) => {
    const first = await acquire();
    const second = acquire();
    await secondReplicaWaits();
    await first.store(transaction);
    first.release(slot);
    expect(await second).toMatchObject({ openTransaction: transaction, isEarlier: false });
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
    third.release(41); // An older slot, as a slow replica reports it.
    expect((await acquire()).landedSlot).toBe(42);
    expect(await server.command("PTTL", "tributary:v2:landed:{payer:address}")).toBeLessThanOrEqual(60_000);
  });

  it("can be released by any replica that knows the outcome of its transaction", async () => {
    await (await acquire()).store(transaction);
    (await acquire()).release();
    expect((await acquire()).openTransaction).toBeUndefined();
  });

  it("that has expired stores no transaction once another replica has acquired it", async () => {
    const slow = await acquire();
    await expire();
    const next = await acquire();
    expect(await slow.store(transaction)).toBe(false);
    slow.release();
    expect(await next.store({ ...transaction, signature: "next" })).toBe(true);
    expect((await acquire()).openTransaction?.signature).toBe("next");
  });

  it("that has expired still stores a transaction while no other replica has acquired it", async () => {
    const slow = await acquire();
    await expire();
    expect(await slow.store(transaction)).toBe(true);
    expect((await acquire()).openTransaction).toEqual(transaction);
  });

  it("with an unreadable transaction fails one collect, but not the next", async () => {
    await server.command("HSET", KEY, "token", "t", "transaction", "{");
    await expect(acquire()).rejects.toMatchObject({ failure: { kind: "stored-transaction-unreadable" } });
    expect((await acquire()).openTransaction).toBeUndefined();
  });

  it("is released even when 10,000 other releases are queued while Redis is down", async () => {
    const first = await acquire();
    await first.store(transaction);
    server.freeze();
    first.release(42);
    const others = createAccountLocks({ feePayer: "payer", redis });
    for (let i = 0; i < 10_001; i++) (await others.acquire(`other${i}`, Infinity)).release();
    server.thaw();
    await redisIsUp();
    expect((await acquire()).openTransaction).toBeUndefined();
  });

  it("is acquired while Redis is down, and released when Redis is up again", async () => {
    server.freeze();
    const first = await acquire();
    expect([first.openTransaction, await first.store(transaction)]).toEqual([undefined, true]);
    first.release();
    server.thaw();
    await redisIsUp();
    expect((await acquire()).openTransaction).toBeUndefined();
  });
});

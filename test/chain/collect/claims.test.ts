import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createClaims, type LastCollect } from "../../../src/chain/collect/claims.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import {
  describeWithRedis,
  eachWithRedis,
  FROZEN,
  isBack,
  PING,
  redis,
  server,
} from "../../support/describe-with-redis.ts";
import { takeClaim } from "../../support/take-claim.ts";

const transaction = { base64: "AQID", signature: "sig", lastValidBlockHeight: 150 };
const KEY = "tributary:v3:claim:{payer:address}";
const KNOWN = "tributary:v3:known:{payer:address}";

const collectOf = (signature: string, secondsAgo: number): LastCollect => ({
  collected: toLamports(1),
  newBalance: toLamports(2),
  signature,
  at: new Date(Date.now() - 1_000 * secondsAgo),
});

it("without Redis, the newest collect is remembered for an hour from its block, of 10,000 accounts", async () => {
  const { readCollects, keepCollect } = createClaims({ feePayer: "payer", redis: undefined });
  const keep = (address: string, collect: LastCollect) => {
    keepCollect(address, collect.signature, collect);
  };
  const lastOf = async (address: string) => (await readCollects(address))[0]?.signature;
  keep("a", collectOf("newer", 10));
  keep("a", collectOf("older", 20));
  keep("b", collectOf("old", 3_601));
  expect([await lastOf("a"), await lastOf("b")]).toEqual(["newer", undefined]);
  for (let i = 0; i <= 10_000; i++) keep(`account${i}`, collectOf("other", 0));
  const signatures = ["a", "account0", "account1"].map(lastOf);
  expect(await Promise.all(signatures)).toEqual([undefined, undefined, "other"]);
});

describeWithRedis("a claim in Redis", () => {
  eachWithRedis(FROZEN);
  /** Those of a replica of its own. */
  const claims = () => createClaims({ feePayer: "payer", redis });
  const take = () => takeClaim(claims(), "address");
  const look = () => claims().look("address");
  const expire = () => server.command("DEL", KEY);
  /** Resolves when a second replica has requested the lock while it is held. */
  const secondReplicaWaits = () =>
    expect.poll(() => server.command("HGET", KEY, "asked")).toBe("1");

  it("gives its signed transaction to a replica that only looks, and is not taken by it", async () => {
    const openTransaction = async () => (await look()).openTransaction;
    expect(await openTransaction()).toBeUndefined();
    const first = await take();
    expect(await openTransaction()).toBeUndefined();
    await first.store({ ...transaction, isShared: true });
    expect(await openTransaction()).toEqual({ ...transaction, isShared: true });
    first.settle();
    expect(await openTransaction()).toBeUndefined();
    expect((await take()).openTransaction).toBeUndefined();
  });

  it("goes to the replica that waits, not to one that asks when it is released", async () => {
    const first = await take();
    const second = take();
    await secondReplicaWaits();
    first.settle();
    const third = take();
    expect(await Promise.race([second.then(() => "second"), third.then(() => "third")])).toBe(
      "second",
    );
    (await second).settle();
    expect((await third).openTransaction).toBeUndefined();
  });

  it("is not given to another replica, which learns who has it", async () => {
    await take();
    const token = await server.command("HGET", KEY, "token");
    expect(await claims().take("address", "another")).toEqual({ holder: token });
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
      await redis.run(PING, {});
      return (await server.command("PTTL", KEY)) <= 15_000;
    }

    it("every 5 seconds while its holder prepares a transaction", async () => {
      await take();
      for (let i = 0; i < 2; i++) expect(await isRenewed()).toBe(true);
    });

    it("no longer once it stores a transaction, is released, or has another holder", async () => {
      const first = await take();
      await first.store(transaction);
      expect(await isRenewed()).toBe(false);
      first.settle();

      await take();
      await holdByAnother();
      expect(await isRenewed()).toBe(false);
      await expire();

      const third = await take();
      third.settle();
      await holdByAnother();
      expect(await isRenewed()).toBe(false);
    });
  });

  it("expires within 15 seconds before a transaction is stored, and after a week with one", async () => {
    const first = await take();
    const ttl = await server.command("PTTL", KEY);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(15_000);
    await first.store(transaction);
    expect(await server.command("PTTL", KEY)).toBeGreaterThan(6 * 24 * 3_600_000);
  });

  it("gives its signed transaction to every replica that acquires it later, any of which can release it", async () => {
    expect(await (await take()).store(transaction)).toBe(true);
    expect(await take()).toMatchObject({ openTransaction: transaction });
    const third = await take();
    expect(third).toMatchObject({ openTransaction: transaction });
    third.settle();
    expect((await take()).openTransaction).toBeUndefined();
  });

  it.each([
    ["in a known slot", 42],
    ["in an unknown slot", 0],
  ])(
    "gives its transaction to a replica that was waiting, even after it has landed %s",
    async (_, slot) => {
      const first = await take();
      const second = take();
      await secondReplicaWaits();
      await first.store(transaction);
      first.settle(slot);
      expect(await second).toMatchObject({ openTransaction: transaction });
    },
  );

  it("is free once the outcome is known, and the next holder knows the slot", async () => {
    const first = await take();
    await first.store(transaction);
    first.settle(42);
    const second = await take();
    expect([second.openTransaction, second.landedSlot]).toEqual([undefined, 42]);
    second.settle();
    const third = await take();
    await third.store(transaction);
    third.settle(41); // An older slot, as a slow replica reports it.
    expect((await take()).landedSlot).toBe(42);
  });

  it("that has expired stores no transaction once another replica has acquired it", async () => {
    const slow = await take();
    await expire();
    const next = await take();
    expect(await slow.store(transaction)).toBe(false);
    slow.settle();
    expect(await next.store({ ...transaction, signature: "next" })).toBe(true);
    expect((await take()).openTransaction?.signature).toBe("next");
  });

  it("that has expired still stores a transaction while no other replica has acquired it", async () => {
    const slow = await take();
    await expire();
    expect(await slow.store(transaction)).toBe(true);
    expect((await take()).openTransaction).toEqual(transaction);
  });

  it("with an unreadable transaction fails one collect, but not the next", async () => {
    await server.command("HSET", KEY, "token", "t", "transaction", "{");
    await expect(take()).rejects.toMatchObject({
      failure: { kind: "stored-transaction-unreadable" },
    });
    expect((await take()).openTransaction).toBeUndefined();
  });

  describe("keeps for all replicas", () => {
    const keepCollect = (collect: LastCollect) => {
      claims().keepCollect("address", collect.signature, collect);
    };

    it("a distribution that was signed for an account, until its outcome is known", async () => {
      await claims().keepPending("address", transaction);
      expect((await look()).pending).toEqual(transaction);
      keepCollect(collectOf("another", 0));
      expect((await look()).pending).toEqual(transaction);
      keepCollect(collectOf(transaction.signature, 0));
      expect((await look()).pending).toBeUndefined();
    });

    it("how many transactions the unit has had, each once", async () => {
      const countOf = async () => (await look()).count;
      expect(await countOf()).toBe(0);
      const first = await take();
      for (let i = 0; i < 2; i++) await first.store(transaction);
      first.settle(1);
      expect(await countOf()).toBe(1);
      const second = await take();
      await second.store({ ...transaction, signature: "other" });
      second.settle();
      expect(await countOf()).toBe(2);
      expect(await server.command("PTTL", KNOWN)).toBeGreaterThan(3_500_000);
    });

    it("the newest collect for an hour, also if an older one becomes known late", async () => {
      const newer = collectOf("newer", 10);
      keepCollect(newer);
      keepCollect(collectOf("older", 20));
      expect((await claims().readCollects("address"))[0]).toEqual(newer);
      expect(await server.command("PTTL", KNOWN)).toBeGreaterThan(60_000);
      expect(await server.command("PTTL", KNOWN)).toBeLessThanOrEqual(3_600_000);
    });
  });

  it("is free for a replica that was waiting when its transaction has landed without being stored", async () => {
    const first = await take();
    const second = take();
    await secondReplicaWaits();
    first.settle(42);
    expect(await second).toMatchObject({ openTransaction: undefined, landedSlot: 42 });
  });

  it("gets its transaction once Redis is back, if Redis was down when the transaction was signed", async () => {
    const first = await take();
    server.freeze();
    await expect.poll(() => redis.run(PING, {})).toBeUndefined();
    expect(await first.store(transaction)).toBe(true);
    server.thaw();
    await isBack(redis);
    expect((await take()).openTransaction).toEqual(transaction);
  });

  it("is acquired while Redis is down, and released when Redis is up again", async () => {
    server.freeze();
    const first = await take();
    expect([first.openTransaction, await first.store(transaction)]).toEqual([undefined, true]);
    first.settle();
    server.thaw();
    await isBack(redis);
    expect((await take()).openTransaction).toBeUndefined();
  });
});

import { expect, it } from "vitest";
import { createAccountLocks, type Lease } from "../../src/chain/collect/account-lock.ts";
import type { Redis } from "../../src/upstream/redis.ts";
import { acquireAsVersion1 } from "../support/account-lock-v1.ts";
import { describeWithRedis, eachWithRedis } from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";

const transaction = { base64: "AQID", signature: "sig", lastValidBlockHeight: 150 };
const OLD_KEY = "tributary:collect:payer:address";
const NEW_KEY = "tributary:v2:collect:{payer:address}";

let server: RedisServer;
let redis: Redis;

describeWithRedis("during an upgrade, replicas of both versions share the lock of an account:", () => {
  eachWithRedis((newServer, newRedis) => {
    server = newServer;
    redis = newRedis;
  });
  const oldReplica = () => acquireAsVersion1(redis, "payer", "address");
  const newReplica = () => createAccountLocks({ feePayer: "payer", redis }).acquire("address", Infinity);
  /** Resolves when another replica has requested the lock while it is held. */
  const isAskedFor = (key: string) => expect.poll(() => server.command("HGET", key, "asked")).toBe("1");

  it("a new replica waits for an old one, and follows the transaction that it stores", async () => {
    const old = await oldReplica();
    let lease: Lease | undefined;
    const waiting = newReplica().then((acquired) => (lease = acquired));
    await isAskedFor(OLD_KEY);
    expect(lease).toBeUndefined();
    await old.store(transaction);
    await old.release(42);
    expect(await waiting).toMatchObject({ openTransaction: transaction, isEarlier: false });
    expect(await newReplica()).toMatchObject({ openTransaction: undefined, landedSlot: 42 });
  });

  it("an old replica waits for a new one, and follows the transaction that it stores", async () => {
    const lease = await newReplica();
    let hasAcquired = false;
    const waiting = oldReplica().finally(() => (hasAcquired = true));
    await isAskedFor(OLD_KEY);
    expect(hasAcquired).toBe(false);
    await lease.store(transaction);
    lease.release(42);
    expect((await waiting).openTransaction).toEqual(transaction);
    expect(await oldReplica()).toMatchObject({ openTransaction: undefined, landedSlot: 42 });
  });

  it("a transaction that a dead old replica stored is followed, and released, by a new one", async () => {
    await (await oldReplica()).store(transaction);
    const lease = await newReplica();
    expect(lease).toMatchObject({ openTransaction: transaction, isEarlier: true });
    lease.release();
    expect((await oldReplica()).openTransaction).toBeUndefined();
  });

  it("a transaction that a dead new replica stored is followed by an old one, and then by a new one", async () => {
    await (await newReplica()).store(transaction);
    const old = await oldReplica();
    expect(old.openTransaction).toEqual(transaction);
    await old.release(42);
    // The old replica cannot release the new name. A new replica finds the outcome, and releases it.
    const lease = await newReplica();
    expect(lease).toMatchObject({ openTransaction: transaction, isEarlier: true, landedSlot: 42 });
    const next = await oldReplica();
    expect(next.openTransaction).toBeUndefined();
    lease.release(42);
    expect(await next.store({ ...transaction, signature: "next" })).toBe(true);
    expect((await newReplica()).openTransaction?.signature).toBe("next");
  });

  it("an old replica that has lost its lease to a new one stores nothing", async () => {
    const old = await oldReplica();
    await server.command("DEL", OLD_KEY);
    const lease = await newReplica();
    expect(await old.store(transaction)).toBe(false);
    expect(await lease.store(transaction)).toBe(true);
  });

  it("a new replica that has lost its lease to an old one stores nothing", async () => {
    const lease = await newReplica();
    await server.command("DEL", OLD_KEY, NEW_KEY);
    const old = await oldReplica();
    expect(await lease.store(transaction)).toBe(false);
    lease.release();
    expect(await old.store(transaction)).toBe(true);
  });

  it("both versions acquire a lock in turn, as often as they release it", async () => {
    for (let i = 0; i < 3; i++) {
      const old = await oldReplica();
      expect(old.openTransaction).toBeUndefined();
      await old.store({ ...transaction, signature: `old ${i}` });
      await old.release(i * 2 + 1);
      const lease = await newReplica();
      expect(lease).toMatchObject({ openTransaction: undefined, landedSlot: i * 2 + 1 });
      await lease.store({ ...transaction, signature: `new ${i}` });
      lease.release(i * 2 + 2);
    }
  });

  it("the keys of version 1 are not used in a cluster, where one script cannot use both versions' keys", async () => {
    const inCluster: Redis = { ...redis, isCluster: true };
    await createAccountLocks({ feePayer: "payer", redis: inCluster }).acquire("address", Infinity);
    expect(await server.command("EXISTS", NEW_KEY)).toBe(1);
    expect(await server.command("EXISTS", OLD_KEY)).toBe(0);
  });
});

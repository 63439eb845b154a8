import { beforeEach, expect, it } from "vitest";
import { createLandedSlots } from "../../src/chain/landed-slots.ts";
import type { Redis } from "../../src/upstream/redis.ts";
import { describeWithRedis, eachWithRedis } from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";

const KEY = "tributary:v2:landed-slot:payer";

let server: RedisServer;
let redis: Redis;

describeWithRedis("the slots of landed transactions", () => {
  eachWithRedis((...started) => {
    [server, redis] = started;
  });
  let received: number[];
  beforeEach(() => {
    received = [];
  });
  const replica = (feePayer = "payer", requireSlot: (slot: number) => void = (slot) => received.push(slot)) =>
    createLandedSlots({ feePayer, redis, requireSlot });
  /** Resolves when the replica receives messages. */
  const isSubscribed = () =>
    expect.poll(() => server.command("PUBSUB", "NUMSUB", KEY)).toEqual([KEY, expect.any(Number)]);

  it("reach every replica with the same fee payer, and no other", async () => {
    const ofOther: number[] = [];
    replica();
    const other = replica("other", (slot) => ofOther.push(slot));
    replica("payer", () => undefined).announce(42);
    await expect.poll(() => received).toContain(42);
    other.announce(43);
    await expect.poll(() => ofOther).toContain(43);
    expect([received, ofOther]).toEqual([[42], [43]]);
  });

  it("reach a replica that starts within a minute: the newest one", async () => {
    const { announce } = replica("payer", () => undefined);
    for (const slot of [41, 42, 40]) announce(slot);
    await expect.poll(() => server.command("GET", KEY)).toBe("42");
    expect(await server.command("PTTL", KEY)).toBeLessThanOrEqual(60_000);
    replica();
    await expect.poll(() => received).toContain(42);
  });

  it("reach a replica that had lost its connection when they were announced", async () => {
    replica();
    await isSubscribed();
    await server.command("CLIENT", "KILL", "TYPE", "pubsub");
    await server.command("SET", KEY, 42, "PX", 60_000);
    await expect.poll(() => received).toContain(42);
  });

  it("are ignored unless they are whole numbers", async () => {
    replica();
    await expect.poll(() => server.command("PUBLISH", KEY, "1")).toBe(1);
    await expect.poll(() => received).toEqual([1]);
    for (const message of ["x", "", "-1", "1.5", "1e400", "9007199254740993", "{}", "2"])
      await server.command("PUBLISH", KEY, message);
    await expect.poll(() => received).toContain(2);
    expect(received).toEqual([1, 2]);
  });

  it("are stored but not received when Redis does not permit the channel", async () => {
    await server.command("ACL", "SETUSER", "default", "resetchannels");
    const { announce } = replica();
    announce(42);
    await expect.poll(() => server.command("GET", KEY)).toBe("42");
    expect(received).toEqual([]);
  });
});

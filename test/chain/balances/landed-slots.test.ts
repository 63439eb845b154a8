import { beforeEach, expect, it } from "vitest";
import { createLandedSlots } from "../../../src/chain/balances/landed-slots.ts";
import type { Redis } from "../../../src/store/redis.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import type { RedisServer } from "../../support/redis-server.ts";

const KEY = "tributary:v2:landed-slot:payer";
const KEY_OF_OTHER = "tributary:v2:landed-slot:other";

let server: RedisServer;
let redis: Redis;

describeWithRedis("the slots of landed transactions", () => {
  eachWithRedis((...started) => {
    [server, redis] = started;
  });
  /** Slots, with the account's address or "all". */
  let received: string[];
  beforeEach(() => {
    received = [];
  });
  const replica = (
    feePayer = "payer",
    hear: (text: string) => void = (text) => received.push(text),
  ) =>
    createLandedSlots({
      feePayer,
      redis,
      floors: {
        require(address, slot) {
          hear(`${slot} ${address}`);
        },
        requireOfAll(slot) {
          hear(`${slot} all`);
        },
      },
    });
  /** Resolves when the replica receives messages. */
  const isSubscribed = (key = KEY) =>
    expect.poll(() => server.command("PUBSUB", "NUMSUB", key)).not.toEqual([key, 0]);

  it("reach every replica with the same fee payer, and no other", async () => {
    const ofOther: string[] = [];
    replica();
    const other = replica("other", (text) => ofOther.push(text));
    await isSubscribed();
    await isSubscribed(KEY_OF_OTHER);
    replica("payer", () => undefined).announce("alice", 42);
    await expect.poll(() => received).toContain("42 alice");
    other.announce("bob", 43);
    await expect.poll(() => ofOther).toContain("43 bob");
    expect([received, ofOther]).toEqual([["42 alice"], ["43 bob"]]);
  });

  it("reach a replica that starts within a minute: the newest one, for all accounts", async () => {
    const { announce } = replica("payer", () => undefined);
    for (const slot of [41, 42, 40]) announce("alice", slot);
    await expect.poll(() => server.command("GET", KEY)).toBe("42");
    expect(await server.command("PTTL", KEY)).toBeLessThanOrEqual(60_000);
    replica();
    await expect.poll(() => received).toContain("42 all");
  });

  it("reach a replica that had lost its connection when they were announced", async () => {
    replica();
    await isSubscribed();
    await server.command("CLIENT", "KILL", "TYPE", "pubsub");
    await server.command("SET", KEY, 42, "PX", 60_000);
    await expect.poll(() => received).toContain("42 all");
  });

  it("are ignored unless they are whole numbers", async () => {
    replica();
    await expect.poll(() => server.command("PUBLISH", KEY, "1")).toBe(1);
    await expect.poll(() => received).toEqual(["1 all"]);
    for (const message of [
      "x",
      "",
      "0",
      "-1",
      "1.5",
      "1e400",
      "9007199254740993",
      "{}",
      "x 1",
      "2 bob",
    ])
      await server.command("PUBLISH", KEY, message);
    await expect.poll(() => received).toContain("2 bob");
    expect(received).toEqual(["1 all", "2 bob"]);
  });

  it("are stored but not received when Redis does not permit the channel", async () => {
    await server.command("ACL", "SETUSER", "default", "resetchannels");
    const { announce } = replica();
    announce("alice", 42);
    await expect.poll(() => server.command("GET", KEY)).toBe("42");
    expect(received).toEqual([]);
  });
});

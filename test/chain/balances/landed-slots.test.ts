import { expect, it } from "vitest";
import { createFloors } from "../../../src/chain/balances/floors.ts";
import {
  describeWithRedis,
  eachWithRedis,
  FROZEN,
  PING,
  redis,
  server,
} from "../../support/describe-with-redis.ts";

const KEY = "tributary:v2:landed-slot:payer";
const KEY_OF_OTHER = "tributary:v2:landed-slot:other";

const replica = (feePayer = "payer") => createFloors({ feePayer, redis });
/** Resolves when the replica receives messages. */
const isSubscribed = (key = KEY) =>
  expect.poll(() => server.command("PUBSUB", "NUMSUB", key)).not.toEqual([key, 0]);

describeWithRedis("the slots of landed transactions", () => {
  eachWithRedis();

  it("reach every replica with the same fee payer, and no other", async () => {
    const [first, other] = [replica(), replica("other")];
    await isSubscribed();
    await isSubscribed(KEY_OF_OTHER);
    replica().announce("alice", 42);
    await expect.poll(() => first.landedSlotOf("alice")).toBe(42);
    replica("other").announce("bob", 43);
    await expect.poll(() => other.landedSlotOf("bob")).toBe(43);
    expect([first.landedSlotOf("bob"), other.landedSlotOf("alice")]).toEqual([0, 0]);
  });

  it("reach a replica that starts within a minute: the newest one, for all accounts", async () => {
    const { announce } = replica();
    for (const slot of [41, 42, 40]) announce("alice", slot);
    await expect.poll(() => server.command("GET", KEY)).toBe("42");
    expect(await server.command("PTTL", KEY)).toBeLessThanOrEqual(60_000);
    const { landedSlotOf } = replica();
    await expect.poll(() => landedSlotOf("anybody")).toBe(42);
  });

  it("reach a replica that had lost its connection when they were announced", async () => {
    const { landedSlotOf } = replica();
    await isSubscribed();
    // Stored before the connection is lost: the replica reads it as soon as it has another.
    await server.command("SET", KEY, 42, "PX", 60_000);
    await server.command("CLIENT", "KILL", "TYPE", "pubsub");
    await expect.poll(() => landedSlotOf("anybody")).toBe(42);
  });

  it("are ignored unless they are whole numbers", async () => {
    const { landedSlotOf } = replica();
    await expect.poll(() => server.command("PUBLISH", KEY, "1")).toBe(1);
    await expect.poll(() => landedSlotOf("anybody")).toBe(1);
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
    await expect.poll(() => landedSlotOf("bob")).toBe(2);
    expect(landedSlotOf("anybody")).toBe(1);
  });
});

describeWithRedis("a slot that is announced while Redis is away", () => {
  eachWithRedis(FROZEN);

  it("reaches every replica once Redis is back", async () => {
    const [first, second] = [replica(), replica()];
    await isSubscribed();
    server.freeze();
    await expect.poll(() => redis.run(PING, {})).toBeUndefined();
    second.announce("alice", 42);
    server.thaw();
    await expect.poll(() => first.landedSlotOf("alice")).toBe(42);
  });
});

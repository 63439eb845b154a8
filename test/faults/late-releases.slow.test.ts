import { expect, it } from "vitest";
import { z } from "zod";
import { createClaims } from "../../src/chain/collect/claims.ts";
import type { Redis } from "../../src/store/redis.ts";
import { script } from "../../src/store/script.ts";
import {
  describeWithRedis,
  eachWithRedis,
  FROZEN,
  isBack,
  PING,
} from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { takeClaim } from "../support/take-claim.ts";

const KEY = "tributary:v3:claim:{payer:address}";
const SET = script({
  keys: ["key"],
  args: ["value"],
  answer: z.unknown(),
  text: "return redis.call('SET', key, value)",
});

let server: RedisServer;
let redis: Redis;

describeWithRedis("while Redis is frozen", () => {
  eachWithRedis((newServer, newRedis) => {
    server = newServer;
    redis = newRedis;
  }, FROZEN);
  const isDown = () => expect.poll(() => redis.run(PING, {})).toBe(undefined);

  it("a collect that finds nothing releases its lock later, so that the next one does not wait for its end", async () => {
    const claims = createClaims({ feePayer: "payer", redis });
    const claim = await takeClaim(claims, "address");
    // It would not expire during the test.
    await server.command("PERSIST", KEY);
    server.freeze();
    await isDown();
    claim.settle();
    // Nothing waits for it when the process stops.
    expect(redis.unwritten()).toBe(0);
    server.thaw();
    await isBack(redis);
    await expect.poll(() => server.command("EXISTS", KEY)).toBe(0);
  });

  it("a write that is only worth something soon is dropped when it is too late; others are not", async () => {
    server.freeze();
    await isDown();
    redis.runLater(SET, { key: "late", value: 1 }, 0);
    redis.runLater(SET, { key: "soon", value: 1 }, 600_000);
    redis.runLater(SET, { key: "always", value: 1 });
    expect(redis.unwritten()).toBe(1);
    server.thaw();
    await isBack(redis);
    await expect.poll(() => server.command("GET", "tributary:always")).toBe("1");
    await expect.poll(() => server.command("GET", "tributary:soon")).toBe("1");
    expect(await server.command("EXISTS", "tributary:late")).toBe(0);
  });

  it("such writes displace no others, however many there are", async () => {
    server.freeze();
    await isDown();
    redis.runLater(SET, { key: "always", value: 1 });
    for (let i = 0; i <= 10_000; i++) redis.runLater(SET, { key: "soon", value: i }, 600_000);
    server.thaw();
    await isBack(redis);
    await expect.poll(() => server.command("GET", "tributary:always")).toBe("1");
    await expect.poll(() => server.command("GET", "tributary:soon")).toBe("10000");
  });
});

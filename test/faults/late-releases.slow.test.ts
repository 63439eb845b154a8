import { expect, it } from "vitest";
import { z } from "zod";
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
});

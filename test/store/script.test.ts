import { expect, it } from "vitest";
import { z } from "zod";
import type { Redis } from "../../src/store/redis.ts";
import { script } from "../../src/store/script.ts";
import { describeWithRedis, eachWithRedis } from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";

const MOVE = script({
  keys: ["source", "target"],
  args: ["amount", "note"],
  answer: z.array(z.string()),
  text: `
redis.call('DECRBY', source, amount)
redis.call('INCRBY', target, amount)
return {source, target, amount, note}`,
});
const SHOW = script({
  keys: ["source"],
  args: ["first", "second"],
  answer: z.array(z.string()),
  text: "return {source, first, second, unpack(KEYS)}",
});

let server: RedisServer;
let redis: Redis;

describeWithRedis("a script", () => {
  eachWithRedis((newServer, newRedis) => {
    server = newServer;
    redis = newRedis;
  });

  it("gets each key and argument under its name, in whatever order the call has them", async () => {
    const call = { note: "", target: "b", amount: 2.5e3, source: "a" };
    const answer = await redis.run(MOVE, call);
    expect(answer).toEqual(["tributary:a", "tributary:b", "2500", ""]);
    redis.runLater(MOVE, call);
    await expect.poll(() => server.command("GET", "tributary:b")).toBe("5000");
  });

  it("gets further keys in their order", async () => {
    const call = { second: "2", source: "a", first: 1 };
    const all = ["tributary:a", "1", "2", "tributary:a", "tributary:c", "tributary:b"];
    expect(await redis.run(SHOW, { ...call, keys: ["c", "b"] })).toEqual(all);
    expect(await redis.run(SHOW, call)).toEqual(all.slice(0, 4));
  });
});

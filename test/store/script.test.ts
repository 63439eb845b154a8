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
  args: ["first", "second"],
  each: ["size", "label"],
  answer: z.array(z.string()),
  text: `
local shown = {first, second}
for i, key in ipairs(KEYS) do
  table.insert(shown, key)
  table.insert(shown, size[i])
  table.insert(shown, label[i])
end
return shown`,
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

  it("over any number of keys gets for each key the values that belong to it", async () => {
    const call = { second: "2", first: 1 };
    const each = [
      { label: "x", key: "a", size: 10 },
      { label: "y", key: "b", size: 20 },
      { label: "z", key: "c", size: 30 },
    ];
    const keys = ["tributary:a", 10, "x", "tributary:b", 20, "y", "tributary:c", 30, "z"];
    expect(await redis.run(SHOW, { ...call, each })).toEqual(["1", "2", ...keys.map(String)]);
    expect(await redis.run(SHOW, { ...call, each: [] })).toEqual(["1", "2"]);
  });
});

import { expect, it } from "vitest";
import { runLoad } from "../../bench/load/load.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";

const SEED = 1;

describeWithRedis("two replicas under load", () => {
  it("every answer is true while endpoints fail or lag, Redis freezes and a replica is killed, and no resource leaks", async () => {
    const { problems } = await runLoad({ seconds: 6, seed: SEED, comparesHeaps: false });
    expect(problems, `LOAD_SEED=${SEED}`).toEqual([]);
  });
});

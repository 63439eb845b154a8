import { expect, it } from "vitest";
import { runLoad } from "../../bench/load/load.ts";
import { runNeverLanding } from "../../bench/load/never-landing.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";

describeWithRedis("two replicas under load", () => {
  it("every answer is true while endpoints lie, Redis freezes and a replica is killed, and no resource leaks", async () => {
    const { problems } = await runLoad(10);
    expect(problems).toEqual([]);
  }, 600_000);

  it("transactions that never land are reported as such, and leave no memory behind", async () => {
    const { problems } = await runNeverLanding(120);
    expect(problems).toEqual([]);
  }, 600_000);
});

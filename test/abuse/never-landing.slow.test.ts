import { expect, it } from "vitest";
import { runNeverLanding } from "../../bench/load/never-landing.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";

const SEED = 1;

describeWithRedis("transactions that never land", () => {
  it("are sent again, and reported as such when they have expired", async () => {
    const { problems } = await runNeverLanding(SEED, 20);
    expect(problems, `LOAD_SEED=${SEED}`).toEqual([]);
  });
});

import { afterAll, beforeAll, expect, it } from "vitest";
import { atOnce, from, type Answer } from "../support/client.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { eventually } from "../support/eventually.ts";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster.ts";
import { startReplicas, type Replicas } from "../support/replicas.ts";

/** Long enough for a busy machine, and short enough to wait for while a node is frozen. */
const REDIS_ANSWER_TIMEOUT_MS = 2_000;

const passed = (answers: readonly Answer[]) =>
  answers.filter(({ status }) => status === 200).length;

describeWithRedis("two gateways that share a Redis Cluster", () => {
  let cluster: RedisCluster;
  let replicas: Replicas;
  beforeAll(async () => {
    cluster = await startRedisCluster();
    replicas = await startReplicas(cluster.url, { redisAnswerTimeoutMs: REDIS_ANSWER_TIMEOUT_MS });
  });
  afterAll(async () => {
    await replicas.close();
    await cluster.stop();
  });

  let callers = 0;
  const lookUpFromOneAddress = () => {
    const address = `192.0.2.${++callers}`;
    return atOnce(100, (i) => replicas.at(i).lookup("creator", from(address)));
  };
  const requestsUntil = (state: () => Promise<unknown>) => {
    const answers: Answer[] = [];
    let isDone = false;
    const requests = [0, 1].map(async (i) => {
      while (!isDone) answers.push(await replicas.at(i).lookup("creator"));
    });
    return state().then(async () => {
      isDone = true;
      await Promise.all(requests);
      return answers;
    });
  };

  it("share one rate limit and one account cache", async () => {
    expect(passed(await lookUpFromOneAddress())).toBe(20);
    await replicas.at(0).lookup("artist001");
    await eventually(async () => {
      expect(await cluster.keys("tributary:v3:account:*:artist001")).toHaveLength(1);
    });
    replicas.sandbox.social.calls.length = 0;
    expect((await replicas.at(1).lookup("artist001")).status).toBe(200);
    expect(replicas.sandbox.social.calls).toEqual([]);
  });

  it.each([
    [
      "frozen",
      (i: number) => cluster.masters[i]!.freeze(),
      (i: number) => cluster.masters[i]!.thaw(),
    ],
    [
      "killed",
      (i: number) => cluster.masters[i]!.stop(),
      (i: number) => cluster.masters[i]!.start(),
    ],
  ])(
    "fail no request while a node is %s, limit alone, and share again afterwards",
    async (_name, end, begin) => {
      await end(1);
      const answers = await requestsUntil(replicas.redisIsAway);
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
      expect(passed(await lookUpFromOneAddress())).toBe(40);
      await begin(1);
      await replicas.redisIsBack();
      expect(passed(await lookUpFromOneAddress())).toBe(20);
    },
  );
});

import { Registry } from "@prometheus-io/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createChainCalls } from "../../src/http/rate-limit/chain-calls.ts";
import { createBudgetMetrics } from "../../src/fairness/budget-metrics.ts";
import { TRUSTED_BLOCK } from "../../src/fairness/budget.ts";
import { from } from "../support/client.ts";
import { describeInMemoryAndInRedis, setSeconds } from "../support/describe-with-redis.ts";
import { hold, isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

/** Four calls each: many more than the 137 that a block may make at once. */
const REQUESTS = 100;
const WALLETS = 100;

describeInMemoryAndInRedis(
  "the calls to the chain for operations with many balances",
  (getRedis) => {
    it("are 13.75 a second for a block, and for an IPv6 /32, and ten seconds' worth at once", async () => {
      const metrics = createBudgetMetrics(new Registry());
      const take = createChainCalls({ redis: getRedis(), metrics });
      const isTaken = async (block: string, calls: number) =>
        take(block, calls).then(
          () => true,
          () => false,
        );
      expect([await isTaken("a", 137), await isTaken("a", 1), await isTaken("b", 137)]).toEqual([
        true,
        false,
        true,
      ]);
      setSeconds(performance.now() / 1_000 + 1);
      expect([await isTaken("a", 14), await isTaken("a", 1)]).toEqual([true, false]);
      for (let i = 0; i < 3; i++) expect(await isTaken(`2001:db8:${i}::/48`, 45)).toBe(true);
      expect([await isTaken("2001:db8:9::/48", 45), await isTaken("2001:db9::/48", 45)]).toEqual([
        false,
        true,
      ]);
      for (let i = 0; i < 3; i++) expect(await isTaken(TRUSTED_BLOCK, 137)).toBe(true);
    });
  },
);

describe("an operation with many balances", () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.close());

  const ids = Array.from({ length: WALLETS }, (_, i) => String(10_000 + i));
  const readMany = (i: number, text: string, socialIds = ids) =>
    world.graphql(
      `query ${text}($ids: [String!]!) { walletsById(socialIds: $ids) { balance { vault } } }`,
      { ids: socialIds },
      from(`192.0.2.${i % 20}`),
    );

  it.each([
    ["a known", () => "Known"],
    ["an unknown", (i: number) => `Unknown${i}`],
  ])(
    "with %s text is SERVICE_BUSY as a whole when its block has used its share",
    async (_name, toText) => {
      // While the chain does not answer, all are received before the share has grown.
      const release = hold(world.sandbox.rpc, isMethod("getMultipleAccounts"));
      const answers = Array.from({ length: REQUESTS }, (_, i) => readMany(i, toText(i)));
      const refused = await Promise.any(
        answers.map(async (answer) => {
          expect((await answer).status).not.toBe(200);
          return answer;
        }),
      );
      release();
      await Promise.all(answers);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "30"]);
      expect(refused.body).toEqual({
        errors: [
          {
            message: expect.stringMatching(
              /^You have used your share of the service's calls to the chain\./,
            ),
            extensions: { code: "SERVICE_BUSY", retryAfterSeconds: 30, scope: "CALLER" },
          },
        ],
      });
      expect((await readMany(30, "Few", ids.slice(0, 25))).status).toBe(200);
      const { body } = await world.request("/metrics");
      expect(body).toMatch(
        /tributary_budget_refusals_total\{budget="chain_calls",scope="CALLER"\} [1-9]/,
      );
    },
  );
});

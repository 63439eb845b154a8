import { describe, expect } from "vitest";
import { readConfig } from "../../src/config.ts";
import { chain, withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ RATE_LIMIT_MAX: "3", SOCIAL_CONCURRENCY: 1 });

/** Every sample of `/metrics` by its name and labels. */
async function scrape(): Promise<Map<string, number>> {
  const { body } = await world.request("/metrics");
  const lines = (body as string).split("\n").filter((line) => line && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.replace(/ \S+$/, ""), Number(/\S+$/.exec(line)![0])]));
}

/** How much each sample grew during `run`, without those that did not change. */
async function growthOf(run: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await scrape();
  await run();
  const after = await scrape();
  return Object.fromEntries(
    [...after]
      .map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const)
      .filter(([name, growth]) => growth !== 0 && name.startsWith("tributary_")),
  );
}

describe("/metrics", () => {
  it("counts requests by operation and code, and their upstream calls", async () => {
    const growth = await growthOf(async () => {
      await world.lookup("creator");
      await world.lookup("creator");
      await world.lookup("nobodyatall");
      await world.lookup("no handle");
      await world.graphql('{ wallets(handles: ["creator", "newcomer", "!"]) { address } }');
      await world.graphql("{ nonsense }");
      await world.request("/nowhere");
      await world.request("/collect", { method: "OPTIONS" });
    });
    expect(growth).toMatchObject({
      'tributary_requests_total{operation="lookup",code="OK"}': 2,
      'tributary_requests_total{operation="lookup",code="SOCIAL_NOT_FOUND"}': 1,
      'tributary_requests_total{operation="lookup",code="INVALID_HANDLE"}': 1,
      'tributary_requests_total{operation="graphql",code="INVALID_HANDLE"}': 1,
      'tributary_requests_total{operation="other",code="NOT_FOUND"}': 1,
      'tributary_request_duration_seconds_count{operation="lookup"}': 4,
      'tributary_account_cache_total{result="hit"}': 2,
      'tributary_account_cache_total{result="miss"}': 3,
      'tributary_upstream_calls_total{upstream="social",method="users by usernames",result="ok"}': 3,
    });
    // A CORS preflight is not an operation.
    expect(Object.keys(growth).filter((name) => name.includes('operation="collect"'))).toEqual([]);
    // A scrape also reads the fee payer's balance.
    expect(
      growth[
        'tributary_upstream_calls_total{upstream="chain",method="getMultipleAccounts",result="ok"}'
      ],
    ).toBeGreaterThanOrEqual(2);
    const invalidOperations = Object.entries(growth).filter(([name]) =>
      /graphql.*(BAD|GRAPHQL)/.test(name),
    );
    expect(invalidOperations.map(([, count]) => count)).toEqual([1]);
  });

  it("counts the money of a collect to the lamport", async () => {
    const { id } = world.account("creator");
    const feesBefore = chain.ledger().length;
    const growth = await growthOf(async () => {
      await world.collectTogether(id, 2);
      await world.collect(id);
    });
    const fees = chain.ledger().slice(feesBefore);
    expect(growth).toMatchObject({
      'tributary_collects_total{result="collected"}': 1,
      'tributary_collects_total{result="nothing"}': 1,
      'tributary_requests_total{operation="collect",code="OK"}': 2,
      'tributary_requests_total{operation="collect",code="NOTHING_TO_COLLECT"}': 1,
      tributary_collected_lamports_total: 3_100_000_000,
      tributary_fees_spent_lamports_total: fees.reduce(
        (sum, { feeLamports }) => sum + Number(feeLamports),
        0,
      ),
    });
    const results = Object.keys(growth).filter((name) => name.includes("collects_total"));
    expect(results).toHaveLength(2);
    const { feePayerKeypair: feePayer } = readConfig(world.sandbox.env).secrets;
    await expect
      .poll(async () => (await scrape()).get("tributary_fee_payer_lamports"))
      .toBe(Number(chain.balance(feePayer.publicKey.toBase58())));
  });

  it("counts requests above the rate limit, and failed upstream calls", async () => {
    const growth = await growthOf(async () => {
      const headers = { "x-forwarded-for": "192.0.2.7" };
      for (let i = 0; i < 5; i++) await world.lookup("creator", headers);
      const lift = world.sandbox.social.faults.add({ then: { status: 401, body: "{}" } });
      await world.lookup("stranger");
      lift();
      world.sandbox.social.faults.add({ times: 2, then: "reset" });
      await world.lookup("stranger");
    });
    expect(growth).toMatchObject({
      'tributary_requests_total{operation="lookup",code="RATE_LIMITED"}': 2,
      'tributary_upstream_calls_total{upstream="social",method="users by usernames",result="401"}': 1,
      'tributary_upstream_calls_total{upstream="social",method="users by usernames",result="unreachable"}': 2,
    });
  });

  it("puts no text from a request into a label", async () => {
    await world.request("/a-path-of-a-stranger");
    await world.lookup("handleofstranger");
    await world.graphql(
      'query NameOfStranger { aliasOfStranger: wallet(handle: "creator") { address } }',
    );
    const { body } = await world.request("/metrics");
    expect(body).not.toMatch(/stranger/i);
  });
});

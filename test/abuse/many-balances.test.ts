import { afterAll, beforeAll, expect, it } from "vitest";
import { from } from "../support/client.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

/** Calls that a block's share allows at once. */
const AT_ONCE = 137;
const WALLETS = 100;

let world: World;
beforeAll(async () => {
  world = await startWorld({ TRUSTED_CALLERS: "203.0.113.1" });
});
afterAll(() => world.close());

const ids = Array.from({ length: WALLETS }, (_, i) => String(10_000 + i));
const QUERY = "query ($ids: [String!]!) { walletsById(socialIds: $ids) { balance { vault } } }";
const readMany = (headers: Record<string, string>, socialIds = ids) =>
  world.graphql(QUERY, { ids: socialIds }, headers);
const calls = () => world.sandbox.rpc.calls.filter(isMethod("getMultipleAccounts")).length;

it("a block's operations with many balances make a quarter of the plan's calls; small ones and others are served", async () => {
  const before = calls();
  let refused;
  // Each address may send 20.
  for (let i = 0; i < 60 && refused?.status !== 503; i++) refused = await readMany(from(`192.0.2.${i % 10}`));
  expect([refused!.status, refused!.headers.get("retry-after")]).toEqual([503, "30"]);
  expect(refused!.body.errors).toMatchObject([
    {
      message: expect.stringMatching(/^You have used your share of the service's calls to the chain\./),
      extensions: { code: "SERVICE_BUSY", scope: "CALLER" },
    },
  ]);
  expect(calls() - before).toBeGreaterThanOrEqual(AT_ONCE - 4);
  const [neighbour, stranger, trusted] = [from("192.0.2.200"), from("198.51.100.1"), from("203.0.113.1")];
  expect((await readMany(neighbour)).status).toBe(503);
  const unknownText = `query A${QUERY.slice("query".length)}`;
  const unknown = await world.graphql(unknownText, { ids }, neighbour);
  expect([unknown.status, unknown.headers.get("retry-after")]).toEqual([503, "30"]);
  expect((await readMany(neighbour, ids.slice(0, 25))).status).toBe(200);
  expect((await world.lookup("creator", neighbour)).status).toBe(200);
  expect((await readMany(stranger)).status).toBe(200);
  expect((await readMany(trusted)).status).toBe(200);
  const { body } = await world.request("/metrics");
  expect(body).toMatch(/tributary_budget_refusals_total\{budget="chain_calls",scope="CALLER"\} [1-9]/);
});

it("the blocks of an IPv6 /32 share one quarter", async () => {
  let refused;
  for (let i = 0; i < 60 && refused?.status !== 503; i++) refused = await readMany(from(`2001:db8:${i}::1`));
  expect(refused!.status).toBe(503);
  expect((await readMany(from("2001:db9::1"))).status).toBe(200);
});

import { describe, expect } from "vitest";
import { onNext } from "../support/sandbox.ts";
import { chain, withNewWorld, world } from "../support/fixtures.ts";

// Without the account cache, so that only the loaders save reads.
const it = withNewWorld({ SOCIAL_CACHE_SECONDS: "0" });

/** Number of balance reads of the address. */
const balanceReads = (address: string) =>
  world.sandbox.rpc.calls.filter(
    ({ method, params }) =>
      method === "getMultipleAccounts" && (params[0] as string[]).includes(address),
  ).length;

describe("within one request", () => {
  it("a wallet is read once with all its coins, even when a slow handle names some of them later", async () => {
    const { id, address, coins, creatorVault } = world.account("launcher");
    const [first, second] = coins.map(({ mint }) => JSON.stringify([mint]));
    const { social } = world.sandbox;
    social.faults.add({ delayMs: 1_000 });
    const answer = world.graphql(`{
      byId: walletById(socialId: "${id}") { none: balance { vault } balance(mints: ${first}) { vault } }
      byHandle: wallet(handle: "launcher") { balance(mints: ${second}) { vault } coins(mints: ${first}) { waiting } }
    }`);
    await expect.poll(() => social.calls).toHaveLength(1);
    chain.setBalance(creatorVault, chain.balance(creatorVault) + 1_000_000_000n);
    expect((await answer).body.data).toEqual({
      byId: { none: { vault: "2.2500" }, balance: { vault: "7.2500" } },
      byHandle: { balance: { vault: "4.7500" }, coins: [{ waiting: "5.0000" }] },
    });
    expect(balanceReads(address)).toBe(1);
  });

  it("an account that is found by handle is not read again by id", async () => {
    const { id, address } = world.account("creator");
    const { body } = await world.graphql(`{
      walletById(socialId: "${id}") { handle balance { total } }
      wallet(handle: "Creator") { handle balance { total } }
    }`);
    const { wallet, walletById } = body.data;
    expect(walletById).toEqual(wallet);
    expect(wallet).toEqual({ handle: "creator", balance: { total: "8.3000" } });
    expect(world.sandbox.social.calls.map(({ names }) => names)).toEqual([["creator"]]);
    expect(balanceReads(address)).toBe(1);
  });

  it("an id is read when no handle resolves to it, and failed handles do not affect it", async () => {
    const { id } = world.account("artist001");
    const { body } = await world.graphql(`{
      wallet(handle: "nobodyatall") { handle }
      walletById(socialId: "${id}") { handle }
    }`);
    expect(body.data).toEqual({ wallet: null, walletById: { handle: "artist001" } });
    expect(world.sandbox.social.calls.map(({ names }) => names)).toEqual([["nobodyatall"], [id]]);
  });
});

it("the wallet of each collect in one request has the balance after that collect", async () => {
  const { id, creatorVault } = world.account("creator");
  const other = world.account("newcomer");
  const { rpc } = world.sandbox;
  const fields = "success newBalance wallet { balance { vault pda } }";
  onNext(
    rpc,
    ({ params }) => JSON.stringify(params).includes(other.creatorVault),
    () => {
      chain.setBalance(creatorVault, chain.balance(creatorVault) + 1_000_000_000n);
    },
  );
  const { body } = await world.graphql(`mutation {
    first: collect(socialId: "${id}") { ${fields} }
    between: collect(socialId: "${other.id}") { success }
    second: collect(socialId: "${id}") { ${fields} }
  }`);
  expect(body.errors).toBeUndefined();
  for (const { success, newBalance, wallet } of [body.data.first, body.data.second])
    expect([success, wallet.balance]).toEqual([true, { vault: "0.0000", pda: newBalance }]);
});

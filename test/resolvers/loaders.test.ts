import { describe, expect } from "vitest";
import { onNext } from "../support/sandbox.ts";
import { withNewWorld, world } from "../support/fixtures.ts";

// Without the account cache, so that only the loaders save reads.
const it = withNewWorld({ SOCIAL_CACHE_SECONDS: "0" });

/** Number of balance reads of the address. */
const balanceReads = (address: string) =>
  world.sandbox.rpc.calls.filter(
    ({ method, params }) =>
      method === "getMultipleAccounts" && (params[0] as string[]).includes(address),
  ).length;

describe("within one request", () => {
  it("a balance is read once and has one value, even when a slow handle requests it later", async () => {
    const { id, address, creatorVault } = world.account("creator");
    const { chain, social } = world.sandbox;
    social.faults.add({ delayMs: 1_000 });
    const query = `{
      first: walletById(socialId: "${id}") { balance { vaultLamports } }
      second: wallet(handle: "creator") { balance { vaultLamports } }
    }`;
    const answer = world.graphql(query);
    await expect.poll(() => social.calls).toHaveLength(1);
    chain.setBalance(creatorVault, chain.balance(creatorVault) + 1_000_000_000n);
    const { first, second } = (await answer).body.data;
    expect(second).toEqual(first);
    expect(balanceReads(address)).toBe(1);
  });

  it("a wallet is read once with all its coins, even when a slow handle names some of them later", async () => {
    const { id, address, coins, creatorVault } = world.account("launcher");
    const [first, second] = coins.map(({ mint }) => JSON.stringify([mint]));
    const { chain, social } = world.sandbox;
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

  it.each([
    ["first", (wallet: string, byId: string) => `{ ${wallet} ${byId} }`],
    ["last", (wallet: string, byId: string) => `{ ${byId} ${wallet} }`],
  ])(
    "an account that was found by handle is not read again by id (handle %s)",
    async (_order, toQuery) => {
      const { id, address } = world.account("creator");
      const query = toQuery(
        'wallet(handle: "Creator") { handle balance { total } }',
        `walletById(socialId: "${id}") { handle balance { total } }`,
      );
      const { wallet, walletById } = (await world.graphql(query)).body.data;
      expect(walletById).toEqual(wallet);
      expect(wallet).toEqual({ handle: "creator", balance: { total: "8.3000" } });
      expect(world.sandbox.social.calls.map(({ names }) => names)).toEqual([["creator"]]);
      expect(balanceReads(address)).toBe(1);
    },
  );

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

describe("within one request with several collects of an account", () => {
  it("each collect's wallet has the balance after that collect", async () => {
    const { id, creatorVault } = world.account("creator");
    const other = world.account("newcomer");
    const { chain, rpc } = world.sandbox;
    const fields = "success newBalance wallet { balance { vault pda } }";
    const mutation = `mutation {
      first: collect(socialId: "${id}") { ${fields} }
      between: collect(socialId: "${other.id}") { success }
      second: collect(socialId: "${id}") { ${fields} }
    }`;
    // Parsed, then from the cache.
    for (let i = 0; i < 3; i++) {
      onNext(
        rpc,
        ({ params }) => JSON.stringify(params).includes(other.creatorVault),
        () => {
          chain.setBalance(creatorVault, chain.balance(creatorVault) + 1_000_000_000n);
        },
      );
      const { data, errors } = (await world.graphql(mutation)).body;
      expect(errors).toBeUndefined();
      for (const { success, newBalance, wallet } of [data.first, data.second]) {
        expect([success || i > 0, wallet.balance.vault]).toEqual([true, "0.0000"]);
        if (success) expect(wallet.balance.pda).toBe(newBalance);
      }
      expect(data.second.success).toBe(true);
    }
  });
});

it("a second request reads again", async () => {
  const { address, creatorVault } = world.account("creator");
  const { chain } = world.sandbox;
  expect((await world.lookup("creator")).body.balance.vault).toBe("3.1000");
  chain.setBalance(creatorVault, chain.balance(creatorVault) + 1_000_000_000n);
  expect((await world.lookup("creator")).body.balance.vault).toBe("4.1000");
  expect(balanceReads(address)).toBe(2);
  expect(world.sandbox.social.calls).toHaveLength(2);
});

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BOTH_ENDPOINTS, startWorld, type World } from "../support/world.ts";
import { isMethod, onNext } from "../support/sandbox.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS });
});
afterEach(() => world.close());

const collect = async (handle = "creator") => (await world.collect(world.account(handle).id)).body;
const balanceOf = async (handle = "creator") => (await world.lookup(handle)).body.balance;

// `npm run load` holds that balances are shown again within 10 s.
describe("while the cluster migrates to Alpenglow", () => {
  beforeEach(async () => {
    await world.close();
    const deadlines = { RPC_TIMEOUT_MS: "2000", COLLECT_TIMEOUT_MS: "4000" };
    world = await startWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS, ...deadlines });
  });

  it("a transaction that is only processed is no success, and is collected once the cluster goes on", async () => {
    const { chain } = world.sandbox;
    await balanceOf();
    const finish = chain.migrateToAlpenglow();
    const during = await collect();
    expect(during).toMatchObject({ success: false, error: "COLLECT_FAILED" });
    // Longer than a blockhash lives.
    chain.advanceSlots(200);
    expect((await world.lookup("creator")).body.balance ?? { vault: "3.1000" }).toMatchObject({
      vault: "3.1000",
    });
    expect(world.sandbox.landedCollects()).toEqual([]);

    finish();
    const clock = setInterval(chain.advanceSlots, 20, 1);
    await expect.poll(() => balanceOf("artist001")).toBeDefined();
    await expect.poll(async () => (await collect(), (await balanceOf())?.pda)).toBe("8.3000");
    clearInterval(clock);
    expect(world.sandbox.landedCollects()).toHaveLength(1);
    expect(await collect()).toMatchObject({ error: "NOTHING_TO_COLLECT" });
  });

  it("a balance that callers have seen does not go back", async () => {
    const { chain } = world.sandbox;
    expect(await collect()).toMatchObject({ success: true });
    const finish = chain.migrateToAlpenglow();
    expect(await balanceOf()).toMatchObject({ vault: "0.0000", pda: "8.3000" });
    await collect("artist001");
    chain.advanceSlots(400);
    expect(await balanceOf()).toMatchObject({ vault: "0.0000", pda: "8.3000" });
    finish();
    await expect.poll(() => balanceOf()).toMatchObject({ vault: "0.0000", pda: "8.3000" });
  });
});

it("after the migration, when confirmed is finalized, collects and lookups work", async () => {
  const { chain } = world.sandbox;
  chain.migrateToAlpenglow()();
  expect(chain.slot("confirmed")).toBe(chain.slot("finalized"));
  expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
  expect(await balanceOf()).toMatchObject({ vault: "0.0000", pda: "8.3000" });
});

describe.each([true, false])(
  "a block with a transaction whose fee payer cannot pay, balances told: %s",
  (withBalances) => {
    it("is INSUFFICIENT_FUNDS at no cost, and the next collect succeeds", async () => {
      const { chain, feePayer, rpc, secondRpc } = world.sandbox;
      chain.includeUnpaid({ withBalances });
      const before = chain.balance(feePayer);
      for (const server of [rpc, secondRpc])
        onNext(server, isMethod("sendTransaction"), () => {
          chain.setBalance(feePayer, 0n);
        });
      expect(await collect()).toMatchObject({ success: false, error: "INSUFFICIENT_FUNDS" });
      expect(chain.ledger().at(-1)).toMatchObject({ err: "AccountNotFound", feeLamports: 0n });
      const metrics = (await world.request("/metrics")).body;
      expect(metrics).toContain("tributary_fees_spent_lamports_total 0");
      chain.setBalance(feePayer, before);
      expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
      expect(world.logLines.join()).not.toContain("a chain endpoint fails");
    });
  },
);

it.each([2_575, 1_322])(
  "when rent falls to %i lamports per byte, what it no longer binds can be collected",
  async (rent) => {
    const { chain } = world.sandbox;
    const { creatorVault, address } = world.account("creator");
    expect(await collect()).toMatchObject({ success: true });
    const [freed, pda] = [chain.rentExemptMinimum(0), chain.balance(address)];
    chain.setRent(rent);
    const released = freed - chain.rentExemptMinimum(0);
    const { body } = await world.graphql(
      `{ wallet(handle: "creator") { balance { vaultLamports } } }`,
    );
    expect(body.data.wallet.balance.vaultLamports).toBe(String(released));
    expect(await collect()).toMatchObject({ success: true });
    expect(chain.balance(creatorVault)).toBe(chain.rentExemptMinimum(0));
    expect(chain.balance(address)).toBe(pda + released);
  },
);

it("a cluster that allows 128 accounts in a transaction, as one that allows 64, collects a crowd once each", async () => {
  const { chain, accounts } = world.sandbox;
  chain.setMaxAccounts(128);
  const crowd = accounts.filter(({ handle }) => handle.startsWith("artist")).slice(0, 60);
  const answers = await Promise.all(crowd.map(({ handle }) => collect(handle)));
  expect(
    answers.filter(({ success, error }) => !success && error !== "NOTHING_TO_COLLECT"),
  ).toEqual([]);
  const sizes = world.sandbox.landedCollects().map(({ message }) => message.staticAccounts.length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(64);
});

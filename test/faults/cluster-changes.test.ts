import { includeUnpaid, setRent } from "../support/chain-levers.ts";
import { describe, expect, onTestFinished, vi } from "vitest";
import { rpcError } from "../support/rpc-answers.ts";
import { withNewWorld, world } from "../support/fixtures.ts";
import { BOTH_ENDPOINTS } from "../support/world.ts";
import { isMethod, onNext } from "../support/sandbox.ts";

const it = withNewWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS });

const collect = async (handle = "creator") => (await world.collect(world.account(handle).id)).body;
const balanceOf = async (handle = "creator") => (await world.lookup(handle)).body.balance;

// `npm run load` holds that balances are shown again within 10 s.
describe("while the cluster stands still", () => {
  const it = withNewWorld({
    SOLANA_RPC_URL: BOTH_ENDPOINTS,
    RPC_TIMEOUT_MS: "2000",
    COLLECT_TIMEOUT_MS: "4000",
  });

  it("balances are shown, and a collect's transaction lands once the cluster goes on", async () => {
    const { chain } = world.sandbox;
    const goOn = world.sandbox.standStill();
    expect(await balanceOf()).toMatchObject({ vault: "3.1000", pda: "5.2000" });
    // A slow machine may need several requests until the transaction is sent; then it stays in
    // flight.
    const failed = { success: false, error: "COLLECT_FAILED" };
    const isSent = () => world.sandbox.rpc.calls.some(isMethod("sendTransaction"));
    do expect(await collect()).toMatchObject(failed);
    while (!isSent());
    expect(world.sandbox.landedCollects()).toEqual([]);

    goOn();
    await expect.poll(async () => (await balanceOf())?.pda).toBe("8.3000");
    const [landed, ...others] = world.sandbox.landedCollects();
    expect(others).toEqual([]);
    // The sandbox shows a landing before it is final; until then a collect would share it.
    await expect.poll(() => chain.slot("finalized")).toBeGreaterThanOrEqual(landed!.slot);
    expect(await collect()).toMatchObject({ error: "NOTHING_TO_COLLECT" });
  });
});

it("after a standstill, when the states of all endpoints look old, balances are shown and collects succeed", async () => {
  const { chain } = world.sandbox;
  const now = Date.now.bind(Date);
  await balanceOf();
  const goOn = world.sandbox.standStill();
  vi.spyOn(Date, "now").mockImplementation(() => now() + 60_000);
  onTestFinished(() => void vi.restoreAllMocks());
  goOn();
  chain.advanceSlots(1);
  expect(Date.now() / 1_000 - chain.blockTime()).toBeGreaterThan(15);
  expect(await balanceOf()).toMatchObject({ vault: "3.1000", pda: "5.2000" });
  expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
  expect(await balanceOf()).toMatchObject({ vault: "0.0000", pda: "8.3000" });
});

describe("on a cluster that follows the consensus before Alpenglow", () => {
  const it = withNewWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS }, { consensus: "tower" });

  it("a collect is a success once its transaction is final, and only once", async () => {
    const { chain } = world.sandbox;
    const first = await collect();
    expect(first).toMatchObject({ success: true, collected: "3.1000" });
    expect(chain.landed(first.txSignature)!.slot).toBeLessThanOrEqual(chain.slot("finalized"));
    expect(await collect()).toMatchObject({ success: false, error: "NOTHING_TO_COLLECT" });
    expect(await balanceOf()).toMatchObject({ vault: "0.0000", pda: "8.3000" });
  });
});

describe("a node that no longer knows the commitment `confirmed`", () => {
  const namesConfirmed = (call: object) => JSON.stringify(call).includes('"confirmed"');
  const HISTORY = `{ wallet(handle: "creator") { history(first: 5) { nodes { kind } } } }`;

  it("serves lookups, collects, histories and the start", async () => {
    const { rpc, secondRpc } = world.sandbox;
    for (const { faults } of [rpc, secondRpc])
      faults.add({ when: namesConfirmed, then: rpcError({ code: -32602 }) });
    await world.gateway.start();
    const coins = world.account("launcher").coins.map(({ mint }) => `&mint=${mint}`);
    expect((await world.lookup("creator")).status).toBe(200);
    expect((await world.request(`/wallet/lookup?handle=launcher${coins.join("")}`)).status).toBe(
      200,
    );
    expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
    expect((await world.graphql(HISTORY)).body).toEqual({
      data: { wallet: { history: { nodes: [{ kind: "COLLECTED" }] } } },
    });
    for (const { calls } of [rpc, secondRpc]) expect(calls.filter(namesConfirmed)).toEqual([]);
  });
});

describe.each([true, false])(
  "a block with a transaction whose fee payer cannot pay, balances told: %s",
  (withBalances) => {
    it("is INSUFFICIENT_FUNDS at no cost, and the next collect succeeds", async () => {
      const { chain, feePayer, rpc, secondRpc } = world.sandbox;
      includeUnpaid(chain, { withBalances });
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
    setRent(chain, rent);
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

it("a cluster that allows 96 accounts in a transaction, as one that allows 64, collects a crowd once each", async () => {
  const { chain, accounts } = world.sandbox;
  chain.maxAccounts = 96;
  const crowd = accounts.filter(({ handle }) => handle.startsWith("artist")).slice(0, 60);
  const answers = await Promise.all(crowd.map(({ handle }) => collect(handle)));
  expect(
    answers.filter(({ success, error }) => !success && error !== "NOTHING_TO_COLLECT"),
  ).toEqual([]);
  const sizes = world.sandbox.landedCollects().map(({ message }) => message.staticAccounts.length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(64);
});

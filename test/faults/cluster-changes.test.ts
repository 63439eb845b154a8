import { expect } from "vitest";
import { includeUnpaid } from "../support/chain-levers.ts";
import { chain, withNewWorld, world } from "../support/fixtures.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { BOTH_ENDPOINTS } from "../support/world.ts";

const TWO = { SOLANA_RPC_URL: BOTH_ENDPOINTS };
const it = withNewWorld(TWO);
const withStandstill = withNewWorld({
  ...{ ...TWO, RPC_TIMEOUT_MS: "1000", COLLECT_TIMEOUT_MS: "1500" },
});
const withEarlierConsensus = withNewWorld(TWO, { blocksToFinality: 32 });

const collect = async (handle = "creator") => (await world.collect(world.account(handle).id)).body;
const balanceOf = async (handle = "creator") => (await world.lookup(handle)).body.balance;

// `npm run load` holds that balances are shown again within 10 s.
withStandstill(
  "while the cluster stands still, balances are shown, and a collect's transaction lands once the cluster goes on",
  async () => {
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
  },
);

withEarlierConsensus(
  "on a cluster that follows the consensus before Alpenglow, a collect is a success once its transaction is final, and only once",
  async () => {
    const first = await collect();
    expect(first).toMatchObject({ success: true, collected: "3.1000" });
    expect(chain.landed(first.txSignature)!.slot).toBeLessThanOrEqual(chain.slot("finalized"));
    expect(await collect()).toMatchObject({ success: false, error: "NOTHING_TO_COLLECT" });
    expect(await balanceOf()).toMatchObject({ vault: "0.0000", pda: "8.3000" });
  },
);

it.each([true, false])(
  "a block with a transaction whose fee payer cannot pay is INSUFFICIENT_FUNDS at no cost, and the next collect succeeds, balances told: %s",
  async (withBalances) => {
    const { feePayer, rpc, secondRpc } = world.sandbox;
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
  },
);

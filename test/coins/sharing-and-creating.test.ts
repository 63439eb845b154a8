import { PublicKey } from "@solana/web3.js";
import { beforeEach, describe, expect } from "vitest";
import { PLACES } from "../../src/chain/launchpad/fee-accounts.ts";
import { coinFees } from "../support/coin-balances.ts";
import { poolOf } from "../support/launchpad-instructions.ts";
import { newMint } from "../support/new-mint.ts";
import { withNewWorld, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;
const OTHER = PublicKey.unique().toBase58();

const it = withNewWorld({ RATE_LIMIT_MAX: "1000" });
let chain: World["sandbox"]["chain"];
beforeEach(() => {
  ({ chain } = world.sandbox);
  const { creatorVault, address } = account();
  chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
  for (const each of [address, OTHER]) chain.setBalance(each, SOL);
});

const account = () => world.account("artist001");

/** A coin whose curve names the account as creator, and whose pool names its sharing config. */
function launch(fees: { onCurve: bigint; inPool: bigint }): string {
  const mint = newMint();
  const { coins } = world.sandbox;
  const { sharingConfig } = coins.addressesOf(mint);
  coins.launch({ mint, creator: account().address, fees: fees.onCurve });
  coins.migrate(mint, { fees: fees.inPool });
  const pool = chain.account(poolOf(mint))!;
  const data = Buffer.from(pool.data);
  new PublicKey(sharingConfig.address).toBuffer().copy(data, PLACES.POOL.layout.creator);
  chain.setAccount(poolOf(mint), { ...pool, data });
  coins.setSharing(mint, {
    isPaused: false,
    shareholders: [account().address, OTHER].map((address) => ({ address, bps: 5_000 })),
  });
  return mint;
}
const lookUp = async (mint: string) =>
  (await world.request(`/wallet/lookup?handle=artist001&mint=${mint}`)).body;
const collect = async (mint: string) => (await world.collect(account().id, {}, [mint])).body;

describe("a shareholder who is also the curve's creator", () => {
  it("sees all of the curve's fees, and they count in its vault", async () => {
    const mint = launch({ onCurve: SOL, inPool: 0n });
    const { coins, balance } = await lookUp(mint);
    expect(coins).toContainEqual(
      expect.objectContaining({
        ...{ stage: "CURVE", waiting: "1.0000", shareBps: 10_000 },
        ...{ collectable: true, reason: null },
      }),
    );
    expect(balance.vault).toBe("1.0000");
  });

  it("gets the curve's fees", async () => {
    const mint = launch({ onCurve: SOL, inPool: 0n });
    expect(await collect(mint)).toMatchObject({ success: true, collected: "1.0000" });
    expect(coinFees(chain, mint).curve).toBe(0n);
  });

  it("gets the curve's fees although the pool's, which it shares, cannot be distributed", async () => {
    const mint = launch({ onCurve: SOL, inPool: 2n * SOL });
    expect(await collect(mint)).toMatchObject({ success: true, collected: "1.0000" });
    const { coins, balance } = await lookUp(mint);
    const ofPool = coins.find(({ stage }: any) => stage === "POOL");
    expect(ofPool).toMatchObject({ collectable: false });
    expect(balance.vault).toBe("0.0000");
  });
});

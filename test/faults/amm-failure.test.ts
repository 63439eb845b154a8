import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LAUNCHPAD_AMM_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import { readConfig } from "../../src/config.ts";
import { setAmmVault } from "../../src/sandbox/chain/creator-fees.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

/**
 * Gives the token account of graduate's AMM vault a size that the AMM refuses; its amount stays
 * readable.
 */
function breakAmmVault() {
  const { chain } = world.sandbox;
  const { ammVault } = world.account("graduate");
  const { lamports, owner, data } = chain.account(ammVault)!;
  chain.setAccount(ammVault, {
    lamports: lamports + 10n ** 9n,
    owner,
    data: Buffer.concat([data, Buffer.alloc(35)]),
  });
}
const AMM_REFUSES = { InstructionError: [0, "InvalidAccountData"] };

describe("a failure of the AMM's part", () => {
  it("does not keep the curve's fees from being collected, and is logged", async () => {
    breakAmmVault();
    const { id } = world.account("graduate");
    const { body } = await world.collect(id);
    expect(body).toMatchObject({ success: true, collected: "1.0000", newBalance: "1.7500" });
    const { message } = world.sandbox.chain.landed(body.txSignature)!;
    expect(message.staticAccounts).not.toContain(LAUNCHPAD_AMM_PROGRAM_ID);
    const [line] = world.logLines.filter((text) =>
      text.includes("leaves out coins or the AMM's fees"),
    );
    const { level, err } = JSON.parse(line!);
    expect(level).toBe(40);
    expect(err.message).toContain(JSON.stringify(AMM_REFUSES));
    // Only the AMM's fees are left, and no collect can move them.
    expect((await world.collect(id)).body.error).toBe("COLLECT_FAILED");
  });

  it("fails the collect when the curve's fees alone are too few", async () => {
    breakAmmVault();
    const { id, creatorVault } = world.account("graduate");
    const { chain } = world.sandbox;
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 99_999n);
    expect((await world.collect(id)).body.error).toBe("COLLECT_FAILED");
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 100_000n);
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.0001" });
  });

  it("is seen in the simulation if the AMM moves nothing: what it leaves does not count for an hour", async () => {
    const { chain } = world.sandbox;
    const { ammVault, id, address } = world.account("graduate");
    setAmmVault(chain, world.account("graduate"), 1_000_000n);
    // One lamport less than the AMM wants there.
    const poor = chain.rentExemptMinimum(165) - 1n;
    chain.setAccount(ammVault, { ...chain.account(ammVault)!, lamports: poor });
    const vault = async () => (await world.lookup("graduate")).body.balance.vault;
    expect(await vault()).toBe("1.0010");
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "1.0000" });
    expect(await vault()).toBe("0.0000");
    expect((await world.collect(id)).body).toMatchObject({
      error: "NOTHING_TO_COLLECT",
      collected: "0.0000",
    });
    expect(world.sandbox.landedCollects()).toHaveLength(1);

    const mint = newMint();
    world.sandbox.coins.launch({ mint, creator: address });
    world.sandbox.coins.migrate(mint);
    const reason = async () =>
      (await world.request(`/wallet/lookup?handle=graduate&mint=${mint}`)).body.coins[0].reason;
    expect(await reason()).toBe("NOTHING_WAITING");
    setAmmVault(chain, world.account("graduate"), 900_000n);
    world.sandbox.coins.addFees(mint, 100_000n);
    expect(await reason()).toBe("BELOW_AMM_MINIMUM");
    expect((await world.collect(id, {}, [mint])).body).toMatchObject({
      success: true,
      collected: "0.0010",
    });
    world.sandbox.coins.addFees(mint, 100_000n);
    expect(await reason()).toBeNull();
  });

  it("is not assumed when the fee payer cannot pay", async () => {
    const { feePayerKeypair: feePayer } = readConfig(world.sandbox.env).secrets;
    world.sandbox.chain.setBalance(feePayer.publicKey.toBase58(), 0n);
    const { body } = await world.collect(world.account("graduate").id);
    expect(body.error).toBe("INSUFFICIENT_FUNDS");
    expect(world.sandbox.rpc.calls.filter(isMethod("simulateTransaction"))).toHaveLength(1);
  });
});

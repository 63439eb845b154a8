import { describe, expect } from "vitest";
import { addAmmFees } from "../support/add-amm-fees.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import { TOKEN_ACCOUNT_BYTES } from "../../src/chain/launchpad/token-accounts.ts";
import { setAmmVault } from "../../src/sandbox/chain/creator-fees.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod } from "../support/sandbox.ts";
import { withNewWorld, world } from "../support/fixtures.ts";

const it = withNewWorld();

/** Whether the collect's transaction called the AMM. */
const callsAmm = (signature: string) =>
  world.sandbox.chain
    .landed(signature)!
    .logs.some((line) => line.includes(`${LAUNCHPAD_AMM_PROGRAM_ID} invoke`));

describe("fees of tokens that have graduated from the bonding curve", () => {
  it("are included in the balance, and are collected with the other fees in one transaction", async () => {
    const { id } = world.account("graduate");
    expect((await world.lookup("graduate")).body.balance).toMatchObject({
      vault: "1.5000",
      pda: "0.7500",
      total: "2.2500",
      withdrawable: "2.2050",
    });
    const { body } = await world.collect(id);
    expect(body).toMatchObject({ success: true, collected: "1.5000", newBalance: "2.2500" });
    expect(callsAmm(body.txSignature)).toBe(true);
    expect((await world.lookup("graduate")).body.balance).toMatchObject({
      vault: "0.0000",
      pda: "2.2500",
      total: "2.2500",
      withdrawable: "2.2050",
    });
    expect((await world.collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
  });

  it("are collected without other fees, into a vault that did not exist", async () => {
    const { id, address, creatorVault } = world.account("newcomer");
    world.sandbox.chain.setBalance(address, 1_000_000n);
    addAmmFees(world.sandbox.chain, address, 200_000_000n);
    expect(world.sandbox.chain.balance(creatorVault)).toBe(0n);
    // The vault keeps its rent-exempt minimum from the first fees.
    expect((await world.lookup("newcomer")).body.balance.vault).toBe("0.1993");
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.1993" });
  });

  it("count above the AMM vault's rent, below which the AMM moves nothing", async () => {
    const account = world.account("graduate");
    const { chain, coins, rpc } = world.sandbox;
    setAmmVault(chain, account, 1_000_000n);
    const rent = chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES);
    chain.setAccount(account.ammVault, {
      ...chain.account(account.ammVault)!,
      lamports: rent - 1n,
    });
    expect((await world.lookup("graduate")).body.balance.vault).toBe("1.0000");
    const { body } = await world.collect(account.id);
    expect(body).toMatchObject({ success: true, collected: "1.0000" });
    expect(callsAmm(body.txSignature)).toBe(false);
    expect(rpc.calls.filter(isMethod("simulateTransaction"))).toHaveLength(1);

    const mint = newMint();
    coins.launch({ mint, creator: account.address });
    coins.migrate(mint, { fees: 100_001n });
    const held = chain.balance(account.address);
    const second = await world.collect(account.id, {}, [mint]);
    expect(second.body).toMatchObject({ success: true, collected: "0.0001" });
    expect(chain.balance(account.address) - held).toBe(100_000n);
    expect(chain.balance(account.ammVault)).toBe(rent);
  });

  it("add the AMM's instruction only if there are any", async () => {
    const { body } = await world.collect(world.account("creator").id);
    expect(callsAmm(body.txSignature)).toBe(false);
  });
});

import { describe, expect } from "vitest";
import { LAUNCHPAD_AMM_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import { chain, withNewWorld, world } from "../support/fixtures.ts";

const it = withNewWorld();

/**
 * Gives the token account of graduate's AMM vault a size that the AMM refuses; its amount stays
 * readable.
 */
function breakAmmVault() {
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
    const { message } = chain.landed(body.txSignature)!;
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
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 99_999n);
    expect((await world.collect(id)).body.error).toBe("COLLECT_FAILED");
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 100_000n);
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.0001" });
  });
});

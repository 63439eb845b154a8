import { beforeEach, describe, expect } from "vitest";
import { LAUNCHPAD_AMM_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import { newMint } from "../support/new-mint.ts";
import { isAccountsRead } from "../support/sandbox.ts";
import { chain, withNewWorld, world } from "../support/fixtures.ts";
import { BOTH_ENDPOINTS } from "../support/world.ts";

/** More lamports than JSON numbers hold exactly. */
const WHALE = 2n ** 60n + 1n;
const SOL = 1_000_000_000n;

const it = withNewWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS });
beforeEach(async () => {
  await world.lookup("creator");
});

/** Which endpoints were asked for accounts. */
const asked = () =>
  [world.sandbox.rpc, world.secondRpc].map(({ calls }) => calls.some(isAccountsRead));

it("a vault of 2^53 lamports or more is shown as 2^53 - 1, and no other wallet or endpoint suffers", async () => {
  // Both handles are cached, so one call reads both wallets.
  await world.lookup("artist001");
  chain.setBalance(world.account("artist001").creatorVault, WHALE);
  world.forgetCalls();
  world.secondRpc.calls.length = 0;
  const { body } = await world.graphql(
    `{ rich: wallet(handle: "artist001") { balance { vault } } other: wallet(handle: "creator") { balance { vault } } }`,
  );
  expect(body.data).toMatchObject({
    rich: { balance: { vault: "9007199.2540" } },
    other: { balance: { vault: "3.1000" } },
  });
  expect(asked()).toEqual([true, false]);
});

it("a coin with an account of 2^53 lamports or more is collected with the others", async () => {
  const [good, rich] = [newMint(), newMint()];
  for (const mint of [good, rich])
    world.sandbox.coins.launch({ mint, creator: world.account("creator").address, fees: SOL });
  const { creatorVault } = world.sandbox.coins.addressesOf(rich).sharingConfig;
  chain.setBalance(creatorVault, WHALE);
  const collected = await world.collect(world.account("creator").id, {}, [rich, good]);
  expect(collected.body).toMatchObject({ success: true, collected: "5.1000" });
});

it("the rent of the escrow program's data is neither in the balance nor in the new balance", async () => {
  const { env } = world.sandbox;
  const { address, id } = world.account("creator");
  const data = new Uint8Array(100);
  const rent = chain.rentExemptMinimum(data.length);
  chain.setAccount(address, {
    lamports: rent + 1_000_000_000n,
    owner: env.ESCROW_PROGRAM_ID,
    data,
  });

  expect((await world.lookup("creator")).body.balance).toMatchObject({
    vault: "3.1000",
    pda: "1.0000",
    total: "4.1000",
    withdrawable: "4.0180",
  });
  expect((await world.collect(id)).body).toMatchObject({
    collected: "3.1000",
    newBalance: "4.1000",
  });
  expect((await world.lookup("creator")).body.balance.pda).toBe("4.1000");
});

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
    expect(message.accountKeys).not.toContain(LAUNCHPAD_AMM_PROGRAM_ID);
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

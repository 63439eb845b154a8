import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

const addFees = async (params: unknown[]) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sandboxAddCreatorFees", params });
  const response = await fetch(world.sandbox.rpc.url, { method: "POST", body });
  expect(await response.json()).toHaveProperty("result");
};
/** Whether the collect's transaction called the AMM. */
const asksAmm = (signature: string) =>
  world.sandbox.chain
    .landed(signature)!
    .logs.some((line) => line.includes(`${world.sandbox.env.LAUNCHPAD_AMM_PROGRAM_ID} invoke`));

describe("fees of tokens that have left the bonding curve", () => {
  it("are counted with the others, and collected with them in one transaction", async () => {
    const { id } = world.account("graduate");
    expect((await world.lookup("graduate")).body.balance).toEqual({
      vault: "1.5000",
      pda: "0.7500",
      total: "2.2500",
    });
    const { body } = await world.collect(id);
    expect(body).toMatchObject({ success: true, collected: "1.5000", newBalance: "2.2500" });
    expect(asksAmm(body.txSignature)).toBe(true);
    expect((await world.lookup("graduate")).body.balance).toEqual({
      vault: "0.0000",
      pda: "2.2500",
      total: "2.2500",
    });
    expect((await world.collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
  });

  it("alone are collected too, into a vault that did not exist", async () => {
    const { id, address, creatorVault } = world.account("newcomer");
    world.sandbox.chain.setBalance(address, 1_000_000n);
    await addFees([address, 200_000_000, "amm"]);
    expect(world.sandbox.chain.balance(creatorVault)).toBe(0n);
    // The vault keeps the rent-exempt minimum of the first that arrives.
    expect((await world.lookup("newcomer")).body.balance.vault).toBe("0.1993");
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.1993" });
  });

  it("are left where they are while they are less than a token account's rent: the AMM would not move them", async () => {
    const { id, address } = world.account("creator");
    await addFees([address, 1_000_000, "amm"]);
    expect((await world.lookup("creator")).body.balance.vault).toBe("3.1000");
    const { body } = await world.collect(id);
    expect(body).toMatchObject({ success: true, collected: "3.1000" });
    expect(asksAmm(body.txSignature)).toBe(false);
    expect((await world.collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
  });

  it("cost the AMM's instruction only where there are any", async () => {
    const { body } = await world.collect(world.account("creator").id);
    expect(asksAmm(body.txSignature)).toBe(false);
  });
});

import { expect } from "vitest";
import { chain, it, world } from "../support/fixtures.ts";

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

import { afterEach, beforeEach, expect, it } from "vitest";
import { readConfig } from "../../src/config.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

it("a fee payer that can pay only the base fee is INSUFFICIENT_FUNDS, and no transaction is sent", async () => {
  const { chain } = world.sandbox;
  const feePayer = readConfig(world.sandbox.env).secrets.feePayer.publicKey.toBase58();
  chain.setPriorityFee(1_000_000);
  chain.setBalance(feePayer, chain.rentExemptMinimum(0) + 5_000n + 100n);
  const { status, body } = await world.collect(world.account("creator").id);
  expect([status, body.error]).toEqual([500, "INSUFFICIENT_FUNDS"]);
  expect(world.chainCalls()).not.toContain("sendTransaction");

  chain.setBalance(feePayer, chain.rentExemptMinimum(0) + 5_000n + 50_000n);
  expect((await world.collect(world.account("creator").id)).body).toMatchObject({ success: true });
});

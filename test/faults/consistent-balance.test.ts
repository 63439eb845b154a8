import { afterEach, beforeEach, expect, it } from "vitest";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

it("the accounts of one wallet are read in one call, and 100 wallets need at most four calls", async () => {
  const accounts = world.sandbox.accounts.filter(({ suspended }) => !suspended).slice(0, 100);
  const fields = accounts.map(
    ({ handle }, i) => `w${i}: wallet(handle: "${handle}") { balance { total } }`,
  );
  const { body } = await world.graphql(`{ ${fields.join(" ")} }`);
  expect(body.errors).toBeUndefined();

  const calls = world.sandbox.rpc.calls.filter(isMethod("getMultipleAccounts"));
  expect(calls.length).toBeLessThanOrEqual(4);
  for (const { creatorVault, ammVault, address } of accounts) {
    const keys = [creatorVault, ammVault, address];
    const perCall = calls.map(
      ({ params }) => keys.filter((key) => (params[0] as string[]).includes(key)).length,
    );
    expect(perCall.toSorted().at(-1)).toBe(3);
    expect(perCall.reduce((sum, count) => sum + count)).toBe(3);
  }
});

import { expect } from "vitest";
import { isMethod } from "../support/sandbox.ts";
import { chain, it, world } from "../support/fixtures.ts";
import { transfer } from "../support/faucet.ts";

/** `count` transfers of 1 SOL to the address of an account, finalized. */
function sendTo(handle: string, count: number): void {
  for (let i = 0; i < count; i++) transfer(chain, world.account(handle).address, 10n ** 9n);
  chain.advanceSlots(1);
}

const QUERY = `query ($id: String!, $first: Int!) {
  walletById(socialId: $id) { address history(first: $first) { nodes { signature } } }
}`;
const read = (handle: string, first: number, address: string) =>
  world.graphql(QUERY, { id: world.account(handle).id, first }, { "x-forwarded-for": address });
const callsOf = (name: string) => world.sandbox.rpc.calls.filter(isMethod(name)).length;

it("a page looks at 30 transactions, or at `first`, and reads none of them twice", async () => {
  for (let i = 0; i < 32; i++) transfer(chain, world.account("artist001").address, 1n);
  sendTo("artist001", 1);
  sendTo("artist002", 32);
  const before = callsOf("getTransaction");
  await read("artist001", 2, "192.0.2.1");
  expect(callsOf("getTransaction") - before).toBe(30);
  await read("artist001", 2, "192.0.2.1");
  expect(callsOf("getTransaction") - before).toBe(30);
  const { body } = await read("artist002", 32, "192.0.2.1");
  expect(body.data.walletById.history.nodes).toHaveLength(32);
  expect(callsOf("getTransaction") - before).toBe(62);
});

import { afterEach, expect, it } from "vitest";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

/** `count` transfers of 1 SOL to the address of an account, finalized. */
function sendTo(handle: string, count: number): void {
  const { chain } = world.sandbox;
  for (let i = 0; i < count; i++) chain.transfer(world.account(handle).address, 10n ** 9n);
  chain.advanceSlots(1);
}

const QUERY = `query ($id: String!, $first: Int!) {
  walletById(socialId: $id) { address history(first: $first) { nodes { signature } } }
}`;
const read = (handle: string, first: number, address: string) =>
  world.graphql(QUERY, { id: world.account(handle).id, first }, { "x-forwarded-for": address });
const callsOf = (name: string) => world.sandbox.rpc.calls.filter(isMethod(name)).length;

const refused = (handle: string, scope: string) => ({
  data: { walletById: { address: world.account(handle).address, history: null } },
  errors: [{ path: ["walletById", "history"], extensions: { code: "SERVICE_BUSY", scope } }],
});

it("a page looks at 30 transactions, or at `first`, and reads none of them twice", async () => {
  world = await startWorld();
  for (let i = 0; i < 32; i++) world.sandbox.chain.transfer(world.account("artist001").address, 1n);
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

it("a page beyond the share of a block is refused, and others are still served", async () => {
  // At least a call a second, and 15 for a block.
  world = await startWorld({ RPC_CALLS_PER_SECOND: "4" });
  sendTo("artist001", 60);
  sendTo("artist002", 2);
  const { status, body } = await read("artist001", 60, "192.0.2.1");
  expect([status, body]).toMatchObject([200, refused("artist001", "CALLER")]);
  const { retryAfterSeconds } = body.errors[0].extensions;
  expect(body.errors[0].message).toContain(
    `You have used your share of the service's calls to the chain for now. Try again in ${retryAfterSeconds} second`,
  );
  expect((await read("artist002", 5, "198.51.100.1")).body.errors).toBeUndefined();
  // What was read stays cached, so a later page goes on from there.
  expect(callsOf("getTransaction")).toBeGreaterThan(0);
});

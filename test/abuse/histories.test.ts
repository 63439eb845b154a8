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

it("a block of addresses gets an eighth of the hour's calls for histories, and others are still served", async () => {
  world = await startWorld({ HISTORY_CALLS_PER_HOUR: 2_400 });
  for (const handle of ["artist001", "artist002", "artist003"]) sendTo(handle, 40);
  // 21 of the 64 calls that the block has at once: one list, and 20 transactions.
  expect((await read("artist001", 20, "192.0.2.1")).body.errors).toBeUndefined();
  // A page whose transactions are cached costs one call.
  for (let i = 0; i < 25; i++)
    expect((await read("artist001", 20, `192.0.2.${10 + i}`)).body.errors).toBeUndefined();
  expect(callsOf("getTransaction")).toBe(20);
  const { status, body } = await read("artist002", 20, "192.0.2.3");
  expect([status, body]).toMatchObject([200, refused("artist002", "CALLER")]);
  expect(body.errors[0].message).toMatch(
    /^You have used your share of the service's budget of calls for histories for now\. Try again in \d+ seconds\.$/,
  );
  expect(callsOf("getTransaction") + callsOf("getSignaturesForAddress")).toBeLessThanOrEqual(65);
  expect((await read("artist003", 20, "198.51.100.1")).body.errors).toBeUndefined();
});

it("when all blocks have used the budget, histories are refused and balances are answered", async () => {
  world = await startWorld({ HISTORY_CALLS_PER_HOUR: 480 });
  const handles = Array.from({ length: 8 }, (_, i) => `artist${String(i + 1).padStart(3, "0")}`);
  for (const handle of handles) sendTo(handle, 30);
  const answers = [];
  for (const [i, handle] of handles.entries()) answers.push(await read(handle, 30, `192.0.${i}.1`));
  const scopes = answers.map(({ body }) => body.errors?.[0].extensions.scope);
  expect(scopes).toEqual(handles.map((_, i) => (i < 5 ? undefined : "SERVICE")));
  expect(callsOf("getTransaction") + callsOf("getSignaturesForAddress")).toBeLessThanOrEqual(165);
  expect((await world.lookup("artist008")).status).toBe(200);
  const metrics = (await world.request("/metrics")).body as string;
  expect(metrics).toMatch(
    /tributary_budget_refusals_total\{budget="history_calls",scope="SERVICE"\} [1-9]/,
  );
  expect(metrics).toMatch(/tributary_budget_used_ratio\{budget="history_calls"\} (1|0\.9\d*)\n/);
});

it("a budget too small for a page says so", async () => {
  world = await startWorld({ HISTORY_CALLS_PER_HOUR: 0 });
  const { body } = await read("artist001", 1, "192.0.2.1");
  expect(body).toMatchObject(refused("artist001", "SERVICE"));
  expect(body.errors[0].message).toBe(
    "The service's budget of calls for histories does not allow this page.",
  );
});

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { from } from "../support/client.ts";
import { openEventStream, type EventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

const ATTACKER = "192.0.2.1";
const HONEST = "198.51.100.1";
const STREAMS = 10;
/** The keys of a wallet with 19 coins fill a call. */
const FULL_CALL = 90;
const SOL = 10n ** 9n;
const WATCH = `subscription Watch($id: String!, $some: [String!], $others: [String!]) {
  walletById(socialId: $id) {
    balance(mints: $some) { vault }
    others: balance(mints: $others) { vault }
  }
}`;
const newMints = (count: number) => Array.from({ length: count }, newMint);

let world: World;
let streams: EventStream[];
beforeEach(async () => {
  // Streams make about three calls a second.
  world = await startWorld({ RPC_CALLS_PER_SECOND: "120", RATE_LIMIT_MAX: "1000" });
  streams = [];
});
afterEach(async () => {
  for (const { close } of streams) close();
  await world.close();
});

async function open(handle: string, address: string, coins = 0): Promise<EventStream> {
  const { id } = world.account(handle);
  const half = Math.ceil(coins / 2);
  const variables = { id, some: newMints(half), others: newMints(coins - half) };
  const stream = await openEventStream(world.url, { query: WATCH, variables }, { address });
  streams.push(stream);
  await eventually(() => {
    expect(stream.events()).toHaveLength(1);
  });
  return stream;
}

/** The addresses of each read of accounts. */
const reads = () =>
  world.sandbox.rpc.calls
    .filter(isMethod("getMultipleAccounts"))
    .map(({ params }) => (params as [string[]])[0]);
const isFull = (keys: readonly string[]) => keys.length >= FULL_CALL;
const fullReads = () => reads().filter(isFull);

it("a change of an account is shown while an address collects another one all the time, and watches it with ten streams of 19 coins", async () => {
  const attacked = world.account("artist001");
  for (let i = 0; i < STREAMS; i++) await open(attacked.handle, ATTACKER, 19);
  let isOver = false;
  /** Collects again after each read, so that there is always a changed wallet. */
  async function collectAgain(): Promise<void> {
    while (!isOver) {
      await world.collect(attacked.id, from(ATTACKER));
      const before = fullReads().length;
      await vi.waitUntil(() => isOver || fullReads().length > before, { timeout: 200_000 });
    }
  }
  const collects = collectAgain();
  const honest = world.account("artist002");
  try {
    const stream = await open(honest.handle, HONEST);
    const { chain } = world.sandbox;
    for (let change = 1; change <= 3; change++) {
      chain.setBalance(honest.creatorVault, chain.balance(honest.creatorVault) + SOL);
      const start = reads().length;
      await eventually(() => {
        expect(stream.events()).toHaveLength(1 + change);
      });
      const laterReads = reads().slice(start);
      const read = laterReads.findIndex((keys) => keys.includes(honest.creatorVault));
      expect(laterReads.slice(0, read).filter(isFull).length).toBeLessThanOrEqual(2);
    }
  } finally {
    isOver = true;
    await collects;
  }
});

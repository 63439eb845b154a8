import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let liar: LyingEndpoint;
/** Far more than time explains. */
const MANY_SLOTS = 2_000;

/** A gateway whose only endpoint has just said, twice, that it is at a slot of the future. */
beforeEach(async () => {
  world = await startWorld(async (sandbox) => {
    liar = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: liar.url, RPC_TIMEOUT_MS: "2000" };
  });
  const slot = world.sandbox.chain.slot("confirmed") + MANY_SLOTS;
  liar.lie({ getMultipleAccounts: (tellTruth) => ({ ...tellTruth(), context: { slot } }) });
  for (let i = 0; i < 2; i++) await world.lookup("creator");
  liar.stopLying();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
  await liar.close();
});

/** Lets the two clocks show this much later, or earlier. */
function move(clocks: { wallMs: number; monotonicMs: number }): void {
  const [wall, monotonic] = [Date.now.bind(Date), performance.now.bind(performance)];
  vi.spyOn(Date, "now").mockImplementation(() => wall() + clocks.wallMs);
  vi.spyOn(performance, "now").mockImplementation(() => monotonic() + clocks.monotonicMs);
}

it.each([
  ["while the clocks agree", { wallMs: 1_000, monotonicMs: 1_000 }],
  ["while the machine is suspended", { wallMs: 61_000, monotonicMs: 0 }],
])("a wrong slot stops no lookup and no collect: %s", async (_, clocks) => {
  move(clocks);
  world.sandbox.chain.advanceSlots(1);
  expect((await world.lookup("creator")).body.balance.vault).toBe("3.1000");
  expect((await world.collect(world.account("creator").id)).body).toMatchObject({ collected: "3.1000" });
});

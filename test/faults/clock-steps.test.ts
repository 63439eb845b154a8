import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CLOCK_SYSVAR } from "../../src/chain/slots/clock.ts";
import {
  earlierClock,
  startLyingEndpoint,
  type LyingEndpoint,
} from "../support/doubles/lying-endpoint.ts";
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
  const slot = world.sandbox.chain.slot("finalized") + MANY_SLOTS;
  liar.lie({ getMultipleAccounts: (tellTruth) => ({ ...tellTruth(), context: { slot } }) });
  for (let i = 0; i < 2; i++) await world.lookup("creator");
  liar.stopLying();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
  await liar.close();
});

const [wall, monotonic] = [Date.now.bind(Date), performance.now.bind(performance)];
/** Lets the two clocks show this much later, or earlier, than they do. */
function move(clocks: { wallMs: number; monotonicMs: number }): void {
  vi.spyOn(Date, "now").mockImplementation(() => wall() + clocks.wallMs);
  vi.spyOn(performance, "now").mockImplementation(() => monotonic() + clocks.monotonicMs);
}

const collect = () => world.collect(world.account("creator").id);
const vault = async () => (await world.lookup("creator")).body.balance?.vault as unknown;

it.each([
  ["while the clocks agree", { wallMs: 1_000, monotonicMs: 1_000 }],
  ["while the machine is suspended", { wallMs: 61_000, monotonicMs: 0 }],
])("a wrong slot stops no lookup and no collect: %s", async (_, clocks) => {
  move(clocks);
  world.sandbox.chain.advanceSlots(1);
  expect(await vault()).toBe("3.1000");
  expect((await collect()).body).toMatchObject({ collected: "3.1000" });
});

it.each([
  ["set back", -150],
  ["set forward", 150],
])(
  "a wrong slot stops lookups and collects for 10 s at most if the clock is %s by 150 s",
  async (_, seconds) => {
    // The sandbox's chain has the machine's time; a real one keeps its own.
    liar.lie({
      getMultipleAccounts(tellTruth, [keys]) {
        const { context, value } = tellTruth();
        const toOwnTime = (truth: unknown, i: number) =>
          keys[i] === CLOCK_SYSVAR ? earlierClock(truth, seconds) : truth;
        return { context, value: value.map(toOwnTime) };
      },
    });
    move({ wallMs: seconds * 1_000, monotonicMs: 0 });
    // Shows the endpoint's true slot, which may be refused.
    await vault();
    move({ wallMs: seconds * 1_000 + 10_000, monotonicMs: 10_000 });
    world.sandbox.chain.advanceSlots(50);
    expect(await vault()).toBe("3.1000");
    expect((await collect()).body).toMatchObject({ collected: "3.1000" });
  },
);

describe("a machine that was suspended for 400 s", () => {
  const SUSPENDED_MS = 400_000;
  const SLOTS_MEANWHILE = 2_000;

  it.each([
    ["one endpoint", 1],
    ["two endpoints", 2],
  ])("collects at once after it resumes: %s", async (_, count) => {
    await world.close();
    world = await startWorld((sandbox) =>
      Promise.resolve({
        SOLANA_RPC_URL: [sandbox.rpc, sandbox.secondRpc]
          .slice(0, count)
          .map(({ url }) => url)
          .join(),
        RPC_TIMEOUT_MS: "5000",
      }),
    );
    const collect = (handle: string) => world.collect(world.account(handle).id);
    // Shows the endpoints' heights before the suspension.
    expect((await collect("artist001")).body).toMatchObject({ success: true });
    move({ wallMs: SUSPENDED_MS, monotonicMs: 0 });
    world.sandbox.chain.advanceSlots(SLOTS_MEANWHILE);
    expect((await collect("creator")).body).toMatchObject({ collected: "3.1000" });
    expect(world.sandbox.landedCollects()).toHaveLength(2);
    expect(world.logLines.filter((line) => line.includes('"level":40'))).toEqual([]);
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CLOCK_SYSVAR } from "../../src/chain/slots/clock.ts";
import {
  earlierClock,
  startLyingEndpoint,
  type LyingEndpoint,
} from "../support/doubles/lying-endpoint.ts";
import { hold, isLook, isMethod, NEVER_MS } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let liar: LyingEndpoint;
/** Far more than time explains. */
const MANY_SLOTS = 2_000;

/** A gateway whose only endpoint has just said, twice, that it is at a slot of the future. */
beforeEach(async () => {
  world = await startWorld(async (sandbox) => {
    liar = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: liar.url };
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
    // Shows the endpoint's true slot. If that is refused, the lookup asks again.
    liar.calls.length = 0;
    let isAnswered = false;
    const answer = vault().finally(() => {
      isAnswered = true;
    });
    await expect.poll(() => isAnswered || liar.calls.length > 1).toBe(true);
    move({ wallMs: seconds * 1_000 + 10_000, monotonicMs: 10_000 });
    world.sandbox.chain.advanceSlots(50);
    expect(await answer).toBe("3.1000");
    expect(await vault()).toBe("3.1000");
    expect((await collect()).body).toMatchObject({ collected: "3.1000" });
  },
);

describe("a machine that was suspended for 400 s", () => {
  const SUSPENDED_MS = 400_000;
  const SLOTS_MEANWHILE = 2_000;

  async function startWithEndpoints(count: number): Promise<void> {
    await world.close();
    world = await startWorld(
      (sandbox) =>
        Promise.resolve({
          SOLANA_RPC_URL: [sandbox.rpc, sandbox.secondRpc]
            .slice(0, count)
            .map(({ url }) => url)
            .join(),
        }),
      { waits: { reportMs: NEVER_MS } },
    );
  }
  const collect = (handle: string) => world.collect(world.account(handle).id);
  function suspend(): void {
    move({ wallMs: SUSPENDED_MS, monotonicMs: 0 });
    world.sandbox.chain.advanceSlots(SLOTS_MEANWHILE);
  }
  async function expectCollectsAtOnce(): Promise<void> {
    expect((await collect("creator")).body).toMatchObject({ collected: "3.1000" });
    expect(world.sandbox.landedCollects()).toHaveLength(2);
    expect(world.logLines.filter((line) => line.includes('"level":40'))).toEqual([]);
  }

  it.each([
    ["one endpoint", 1],
    ["two endpoints", 2],
  ])("collects at once after it resumes: %s", async (_, count) => {
    await startWithEndpoints(count);
    // Shows the endpoints' heights before the suspension.
    expect((await collect("artist001")).body).toMatchObject({ success: true });
    suspend();
    await expectCollectsAtOnce();
  });

  it.each([
    ["one endpoint", 1],
    ["two endpoints", 2],
  ])(
    "collects at once although answers from before the suspension arrive after it: %s",
    async (_, count) => {
      await startWithEndpoints(count);
      const endpoints = [world.sandbox.rpc, world.secondRpc].slice(0, count);
      const looks = endpoints.map((endpoint) => hold(endpoint, isLook));
      const first = collect("artist001");
      await expect
        .poll(() => endpoints.every(({ calls }) => calls.some(isMethod("sendTransaction"))))
        .toBe(true);
      const { promise: isReleased, resolve: release } = Promise.withResolvers<undefined>();
      const askedEndpoints = new Set<unknown>();
      for (const endpoint of endpoints)
        endpoint.faults.add({
          when(call) {
            if (!isMethod("getEpochInfo")(call)) return false;
            askedEndpoints.add(endpoint);
            return true;
          },
          times: 1,
          after: true,
          until: isReleased,
        });
      await expect.poll(() => askedEndpoints.size).toBe(count);
      for (const look of looks) look();
      expect((await first).body).toMatchObject({ success: true });
      suspend();
      release(undefined);
      expect(await vault()).toBe("3.1000");
      await expectCollectsAtOnce();
    },
  );
});

import { afterEach, expect, it, vi } from "vitest";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { isAccountsRead } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let second: LyingEndpoint;
afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
  await second.close();
});

let skippedMs = 0;
/**
 * A gateway that prefers the sandbox's own endpoint. Its chain advances only with the time that
 * tests skip.
 */
async function start(endpoints: 1 | 2): Promise<void> {
  skippedMs = 0;
  const [monotonic, wall] = [performance.now.bind(performance), Date.now.bind(Date)];
  vi.spyOn(performance, "now").mockImplementation(() => monotonic() + skippedMs);
  vi.spyOn(Date, "now").mockImplementation(() => wall() + skippedMs);
  world = await startWorld(async (sandbox) => {
    second = await startLyingEndpoint(sandbox);
    return {
      SOLANA_RPC_URL: endpoints === 1 ? sandbox.rpc.url : `${sandbox.rpc.url},${second.url}`,
    };
  });
  await world.gateway.start();
}
function skip(ms: number, slotMs: number): void {
  skippedMs += ms;
  world.sandbox.chain.advanceSlots(Math.round(ms / slotMs));
}
const vault = async () => (await world.lookup("creator")).body.balance?.vault as unknown;

it.each([
  [1, 200],
  [2, 200],
  [1, 400],
  [2, 400],
] as const)(
  "with %i endpoints and slots of %i ms, a lookup after any pause makes one call",
  async (endpoints, slotMs) => {
    await start(endpoints);
    await vault();
    const reads = () =>
      [world.sandbox.rpc, second].flatMap(({ calls }) => calls.filter(isAccountsRead));
    for (const pauseMs of [1_000, 7_000, 30_000, 120_000]) {
      skip(pauseMs, slotMs);
      world.forgetCalls();
      second.calls.length = 0;
      expect(await vault()).toBe("3.1000");
      expect(reads()).toHaveLength(1);
    }
  },
);

it("an endpoint that adds slots to each answer takes no read from the preferred one", async () => {
  await start(2);
  let added = 0;
  second.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      const { context, value } = tellTruth();
      const poor = value.map((truth: unknown, i: number) =>
        keys[i].startsWith("Sysvar") ? truth : null,
      );
      return { context: { slot: Number(context.slot) + (added += 7) }, value: poor };
    },
    getSlot: (tellTruth) => Number(tellTruth()) + (added += 7),
  });
  const vaults = [];
  for (let i = 0; i < 100; i++) {
    skip(2_400, 200);
    vaults.push(await vault());
    // After a lookup the second endpoint is asked for its state. All servers run in this event
    // loop.
    for (let round = 0; round < 5; round++) await world.request("/livez");
  }
  expect(new Set(vaults)).toEqual(new Set(["3.1000"]));
  expect(added).toBeGreaterThan(100);
});

import { describe, expect, it } from "vitest";
import type { LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { isMethod } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;

let world: World;
let first: LyingEndpoint;
async function start(count: 1 | 2): Promise<void> {
  const started = await startWithLyingEndpoints(count);
  world = started.world;
  [first] = started.endpoints;
}
const collect = async (handle = "creator") => (await world.collect(world.account(handle).id)).body;
/** The preferred endpoint changes its latest blockhash. */
const change = (toOther: (value: any) => object) => {
  first.lie({
    getLatestBlockhash(tellTruth) {
      const { context, value } = tellTruth();
      return { context, value: { ...value, ...toOther(value) } };
    },
  });
};
const callsOf = ({ calls }: LyingEndpoint, method: string) => calls.filter(isMethod(method)).length;

describe.each([
  ["is not base58", "0OIl"],
  ["is too short", "1".repeat(31)],
])("a blockhash that %s", (_, blockhash) => {
  it("is a fault of the chain, not a bug", async () => {
    await start(1);
    change(() => ({ blockhash }));
    expect(await collect()).toMatchObject({ error: "COLLECT_FAILED" });
    expect(callsOf(first, "sendTransaction")).toBe(0);
    const lines = world.logLines.map((line) => JSON.parse(line));
    expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
    expect(lines.map(({ hint }) => hint)).toContain(
      "the chain does not answer as expected: check the endpoints in SOLANA_RPC_URL",
    );
    first.stopLying();
    expect(await collect()).toMatchObject({ success: true });
  });
});

it.each([1, 2] as const)(
  "a blockhash that a proxy of the preferred endpoint caches keeps no account waiting: %i endpoints",
  async (count) => {
    await start(count);
    const { chain } = world.sandbox;
    let cached: unknown;
    first.lie({ getLatestBlockhash: (tellTruth) => (cached ??= tellTruth()) });
    expect(await collect()).toMatchObject({ success: true });
    const before = callsOf(first, "getLatestBlockhash");
    chain.setBalance(world.account("creator").creatorVault, SOL);
    expect(await collect()).toMatchObject({ success: true });
    expect(callsOf(first, "getLatestBlockhash") - before).toBeLessThanOrEqual(1);
    const tokens = world.sandbox.landedCollects().map(({ message }) => message.lifetimeToken);
    expect(tokens).toEqual([tokens[0], tokens[0]]);
    if (count === 1) return;
    chain.advanceSlots(200);
    expect(await collect("artist001")).toMatchObject({ success: true });
  },
);

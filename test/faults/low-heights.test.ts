import { afterEach, beforeEach, expect, it } from "vitest";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

/** More than an endpoint's heights may jump. */
const BLOCKS_TOO_LOW = 2_000;
/** Enough for one backoff of an endpoint. */
const MANY = 30;

let world: World;
let liar: LyingEndpoint;
/** A gateway that prefers an honest endpoint to one that reports low heights. */
beforeEach(async () => {
  world = await startWorld(async (sandbox) => {
    liar = await startLyingEndpoint(sandbox);
    sandbox.chain.advanceSlots(2 * BLOCKS_TOO_LOW);
    return { SOLANA_RPC_URL: `${sandbox.rpc.url},${liar.url}` };
  });
  const lower = (height: unknown) => Number(height) - BLOCKS_TOO_LOW;
  liar.lie({
    getEpochInfo(tellTruth) {
      const info = tellTruth();
      return { ...info, blockHeight: lower(info.blockHeight) };
    },
    getLatestBlockhash(tellTruth) {
      const { context, value } = tellTruth();
      const lastValidBlockHeight = lower(value.lastValidBlockHeight);
      return { context, value: { ...value, lastValidBlockHeight } };
    },
  });
});
afterEach(async () => {
  await world.close();
  await liar.close();
});

it("low heights of the second endpoint make those of the first no less credible", async () => {
  const { rpc, chain } = world.sandbox;
  const { id, creatorVault } = world.account("creator");
  const collect = async () => {
    chain.setBalance(creatorVault, chain.balance(creatorVault) + 1_000_000_000n);
    expect((await world.collect(id)).body).toMatchObject({ success: true });
  };
  // The second endpoint's heights come first, while the first one backs off.
  rpc.faults.add({ times: 1, then: { status: 429, body: "" } });
  await collect();
  expect(liar.calls.some(isMethod("getEpochInfo"))).toBe(true);
  for (let i = 0; i < MANY; i++) await collect();
  expect(world.sandbox.landedCollects()).toHaveLength(1 + MANY);
  const blamed = world.logLines.filter((line) => line.includes("a chain endpoint fails"));
  expect(blamed).toHaveLength(1);
  expect(blamed[0]).toContain("429");
});

import { getBase58Decoder } from "@solana/codecs-strings";
import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { isMethod } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";

let world: World;
let endpoints: LyingEndpoint[];
beforeEach(async () => {
  ({ world, endpoints } = await startWithLyingEndpoints(3));
});
afterEach(async () => {
  await world.close();
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
});

const collect = async (handle: string) => (await world.collect(world.account(handle).id)).body;

/** The preferred endpoint returns blockhashes that no node knows. */
const inventBlockhashes = (blocks: number) => {
  endpoints[0]!.lie({
    getLatestBlockhash(tellTruth) {
      const { context, value } = tellTruth();
      const blockhash = getBase58Decoder().decode(randomBytes(32));
      const lastValidBlockHeight = Number(value.lastValidBlockHeight) + blocks;
      return { context, value: { blockhash, lastValidBlockHeight } };
    },
  });
};

it("blockhashes that only the preferred endpoint knows fail one collect, and no later one", async () => {
  inventBlockhashes(-160);
  expect(await collect("creator")).toMatchObject({ error: "COLLECT_FAILED" });
  for (const handle of ["creator", "artist001", "artist002"])
    expect(await collect(handle)).toMatchObject({ success: true });
});

it("an unknown blockhash fails no later collect, although it is said to be valid for 300 blocks", async () => {
  inventBlockhashes(150);
  const first = collect("creator");
  const isCheck = isMethod("isBlockhashValid");
  const checks = () => endpoints.flatMap(({ calls }) => calls.filter(isCheck)).length;
  await expect.poll(checks).toBeGreaterThanOrEqual(2);
  expect(await collect("artist001")).toMatchObject({ success: true });
  world.sandbox.chain.advanceSlots(400);
  expect(await first).toMatchObject({ error: "COLLECT_FAILED" });
  expect(await collect("creator")).toMatchObject({ success: true });
});

it("a blockhash that a proxy caches keeps no account waiting", async () => {
  const { chain } = world.sandbox;
  let first: unknown;
  endpoints[0]!.lie({ getLatestBlockhash: (tellTruth) => (first ??= tellTruth()) });
  expect(await collect("creator")).toMatchObject({ success: true });
  chain.setBalance(world.account("creator").creatorVault, 1_000_000_000n);
  expect(await collect("creator")).toMatchObject({ success: true });
  chain.advanceSlots(200);
  expect(await collect("artist001")).toMatchObject({ success: true });
});

import { onTestFinished } from "vitest";
import { startLyingEndpoint, type LyingEndpoint } from "./doubles/lying-endpoint.ts";
import { startWorld, type World } from "./world.ts";

/** The slots of the chain before a test. Slots below the first one do not exist. */
const SLOTS_BEFORE = 3_000;

/**
 * Starts a gateway with so many endpoints, the preferred one first, whose answers can be changed.
 * All stop when the test ends.
 */
export async function startWithLyingEndpoints(
  count: number,
  env: Readonly<Record<string, string>> = {},
  options?: Parameters<typeof startWorld>[1],
): Promise<{ world: World; endpoints: readonly [LyingEndpoint, LyingEndpoint] }> {
  let endpoints: LyingEndpoint[] = [];
  const world = await startWorld(async (sandbox) => {
    sandbox.chain.advanceSlots(SLOTS_BEFORE);
    endpoints = await Promise.all(Array.from({ length: count }, () => startLyingEndpoint(sandbox)));
    return { SOLANA_RPC_URL: endpoints.map(({ url }) => url).join(), ...env };
  }, options);
  onTestFinished(async () => {
    for (const { stopLying, faults } of endpoints) {
      stopLying();
      faults.clear();
    }
    await world.close();
    await Promise.all(endpoints.map((endpoint) => endpoint.close()));
  });
  return { world, endpoints: endpoints as unknown as readonly [LyingEndpoint, LyingEndpoint] };
}

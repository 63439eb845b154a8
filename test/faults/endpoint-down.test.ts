import { afterEach, beforeEach, expect, it } from "vitest";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { NEVER_MS } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let endpoints: LyingEndpoint[];
beforeEach(async () => {
  world = await startWorld(
    async (sandbox) => {
      endpoints = await Promise.all([0, 1].map(() => startLyingEndpoint(sandbox)));
      const SOLANA_RPC_URL = endpoints.map(({ url }) => url).join();
      return { SOLANA_RPC_URL, COLLECT_TIMEOUT_MS: "60000" };
    },
    { waits: { aloneMs: NEVER_MS } },
  );
});
afterEach(async () => {
  for (const { faults } of endpoints) faults.clear();
  await world.close();
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
});
it("a collect does not wait for the second endpoint to return the transaction while it is down", async () => {
  endpoints[1]!.faults.add({ then: "reset" });
  const { body } = await world.collect(world.account("creator").id);
  expect(body).toMatchObject({ success: true });
});

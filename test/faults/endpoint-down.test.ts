import { afterEach, beforeEach, expect, it } from "vitest";
import type { LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { NEVER_MS } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";

let world: World;
let endpoints: LyingEndpoint[];
beforeEach(async () => {
  const env = { COLLECT_TIMEOUT_MS: "60000" };
  ({ world, endpoints } = await startWithLyingEndpoints(2, env, { waits: { aloneMs: NEVER_MS } }));
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

import { expect, it } from "vitest";
import type { LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { rpcError } from "../support/rpc-answers.ts";
import type { World } from "../support/world.ts";

let world: World;
let first: LyingEndpoint;
async function start(count: 1 | 2, env: Record<string, string> = {}): Promise<void> {
  const started = await startWithLyingEndpoints(count, env);
  world = started.world;
  [first] = started.endpoints;
  await world.gateway.start();
}
const vaultOf = async (handle = "creator"): Promise<unknown> =>
  (await world.lookup(handle)).body.balance?.vault;
const collect = async () => (await world.collect(world.account("creator").id)).body;

/** Asks without a proxy: only callers on this machine see the warnings. */
async function readyz() {
  const response = await fetch(`${world.url}/readyz`);
  return { status: response.status, body: (await response.json()) as { warnings?: string[] } };
}

it.each([-32700, -32002, -32015])(
  "the error %i of the preferred endpoint to any method fails no request, and /readyz warns",
  async (code) => {
    await start(2);
    first.faults.add({ then: rpcError({ code }) });
    expect(await vaultOf()).toBe("3.1000");
    expect(await collect()).toMatchObject({ collected: "3.1000" });
    const { status, body } = await readyz();
    const { host } = new URL(first.url);
    expect(status).toBe(200);
    expect(body.warnings).toContainEqual(
      expect.stringMatching(new RegExp(`^${host}: a chain endpoint (fails|refuses)`)),
    );
  },
);

it("/readyz shows no warning while both endpoints work", async () => {
  await start(2);
  expect(await collect()).toMatchObject({ collected: "3.1000" });
  expect((await readyz()).body.warnings).toBeUndefined();
});

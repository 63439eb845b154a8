import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startSwappingProxy } from "../support/doubles/swapping-proxy.ts";
import { startWorld, type World } from "../support/world.ts";

describe("behind a proxy that swaps two answers", () => {
  let world: World;
  let proxy: Awaited<ReturnType<typeof startSwappingProxy>>;
  beforeEach(async () => {
    world = await startWorld(async ({ rpc }) => {
      proxy = await startSwappingProxy(rpc.url);
      return { SOLANA_RPC_URL: proxy.url };
    });
  });
  afterEach(async () => {
    await world.close();
    await proxy.close();
  });

  const overRest = async (handle: string): Promise<string> =>
    (await world.lookup(handle)).body.balance.total;
  const overGraphql = async (handle: string): Promise<string> => {
    const { body } = await world.graphql(`{ wallet(handle: "${handle}") { balance { total } } }`);
    return body.data.wallet.balance.total;
  };

  it("each caller gets the balance of its own account", async () => {
    const totals = [await overRest("creator"), await overRest("artist001")];
    expect(totals[0]).not.toBe(totals[1]);
    proxy.swapOnce();
    const early = overRest("creator");
    await expect.poll(proxy.isHolding).toBe(true);
    const late = overGraphql("artist001");
    expect(await Promise.all([early, late])).toEqual(totals);
    expect(proxy.isHolding()).toBe(false);
  });
});

it("an error without an id is the node's own: it does not know the id of a call that it cannot read", async () => {
  const world = await startWorld();
  const withoutId = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "too large" } };
  world.sandbox.rpc.faults.add({ then: { status: 200, body: JSON.stringify(withoutId) } });
  expect((await world.lookup("creator")).body.error).toBe("LOOKUP_FAILED");
  expect(world.logLines.join()).toContain("error -32600");
  await world.close();
});

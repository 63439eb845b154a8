import { afterEach, beforeEach, expect, it } from "vitest";
import { rpcResult } from "../support/rpc-answers.ts";
import { isMethod, NEVER_MS } from "../support/sandbox.ts";
import { BOTH_ENDPOINTS, startWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS }, { waits: { resendMs: NEVER_MS } });
});
afterEach(() => world.close());

it("a transaction lands although the first endpoint accepts and drops it, because it is sent to all", async () => {
  world.sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: rpcResult("dropped") });
  expect((await world.collect(world.account("creator").id)).body).toMatchObject({
    success: true,
    collected: "3.1000",
  });
  const sends = [world.sandbox.rpc, world.secondRpc].map((rpc) =>
    rpc.calls.filter(isMethod("sendTransaction")),
  );
  expect(sends.map((calls) => calls.length)).toEqual([1, 1]);
  expect(new Set(sends.flat().map(({ params }) => params[0])).size).toBe(1);
});

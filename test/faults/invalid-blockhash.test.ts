import { afterEach, beforeEach, expect, it } from "vitest";
import { rpcResult } from "../support/rpc-answers.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

it.each([
  ["is not base58", "0OIl"],
  ["is too short", "1".repeat(31)],
])(
  "a blockhash that %s is reported as a fault of the chain, not as a bug",
  async (_, blockhash) => {
    const { chain, rpc } = world.sandbox;
    const { lastValidBlockHeight } = chain.latestBlockhash("finalized");
    const result = {
      context: { slot: chain.slot("finalized") },
      value: { blockhash, lastValidBlockHeight },
    };
    rpc.faults.add({
      when: isMethod("getLatestBlockhash"),
      then: rpcResult(result),
    });
    const { id } = world.account("creator");
    expect((await world.collect(id)).body.error).toBe("COLLECT_FAILED");
    expect(world.chainCalls()).not.toContain("sendTransaction");
    const lines = world.logLines.map((line) => JSON.parse(line));
    expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
    expect(lines.map(({ hint }) => hint)).toContain(
      "the chain does not answer as expected: check the endpoints in SOLANA_RPC_URL",
    );

    rpc.faults.clear();
    expect((await world.collect(id)).body).toMatchObject({ success: true });
  },
);

import { afterEach, beforeEach, expect, it } from "vitest";
import {
  refuse,
  startLyingEndpoint,
  type LyingEndpoint,
} from "../support/doubles/lying-endpoint.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let pruned: LyingEndpoint;
/** The signatures of eight transfers, newest first. */
let all: string[];
beforeEach(async () => {
  world = await startWorld(async (sandbox) => {
    pruned = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: `${pruned.url},${sandbox.rpc.url}` };
  });
  const { chain } = world.sandbox;
  all = Array.from({ length: 8 }, (_, i) => {
    // Some transfers share a slot.
    if (i % 3 === 0) chain.advanceSlots(1);
    return chain.transfer(world.account("artist001").address, 1_000_000_000n);
  }).reverse();
  chain.advanceSlots(1);
});
afterEach(async () => {
  pruned.stopLying();
  await world.close();
  await pruned.close();
});

const QUERY = `query History($id: String!, $first: Int, $after: String) {
  walletById(socialId: $id) {
    history(first: $first, after: $after) { nodes { signature } pageInfo { hasNextPage endCursor } }
  }
}`;
async function readHistory(page: { first?: number; after?: string } = {}) {
  const { body } = await world.graphql(QUERY, { id: world.account("artist001").id, ...page });
  const history = body.data.walletById?.history;
  return {
    signatures: history?.nodes.map((node: any) => node.signature),
    history,
    errors: body.errors,
  };
}
/**
 * Makes the first endpoint list only these of the transactions, and none before one that it does
 * not know.
 */
function keepOnly(kept: readonly string[], unknownCursor: () => unknown = () => []): void {
  pruned.lie({
    getSignaturesForAddress(tellTruth, [, { before }]) {
      if (before && !kept.includes(before)) return unknownCursor();
      return tellTruth().filter(({ signature }: any) => kept.includes(signature));
    },
    getTransaction: (tellTruth, [signature]) => (kept.includes(signature) ? tellTruth() : null),
  });
}

it("transactions that the first endpoint does not keep are listed by the second", async () => {
  keepOnly(all.slice(0, 3));
  const { signatures, history } = await readHistory();
  expect(signatures).toEqual(all);
  expect(history.pageInfo.hasNextPage).toBe(false);
});

it("transactions that the first endpoint lacks in between are merged in, newest first", async () => {
  keepOnly(all.filter((_, i) => i !== 1 && i !== 6));
  expect((await readHistory()).signatures).toEqual(all);
  world.sandbox.rpc.faults.add({ when: isMethod("getSignaturesForAddress"), then: "reset" });
  // Once the second endpoint has failed for some seconds, the first one decides.
  expect((await readHistory()).signatures).toEqual(all.filter((_, i) => i !== 1 && i !== 6));
});

it.each([
  ["an empty list", () => []],
  ["an error of its storage", () => refuse(-32019)],
])(
  "a page after a transaction that the first endpoint does not know comes from the second: %s",
  async (_, none) => {
    keepOnly(all.slice(0, 3), none);
    const { signatures, history } = await readHistory({ first: 2, after: all[3]! });
    expect(signatures).toEqual(all.slice(4, 6));
    expect(history.pageInfo.hasNextPage).toBe(true);
  },
);

it("the page after the oldest transaction is empty", async () => {
  const { signatures, history } = await readHistory({ after: all.at(-1)! });
  expect(signatures).toEqual([]);
  expect(history.pageInfo).toEqual({ hasNextPage: false, endCursor: all.at(-1) });
});

it.each([
  ["an empty list", () => []],
  ["an error of the storage of one", () => refuse(-32019)],
])("a cursor that no endpoint knows is BAD_REQUEST: %s", async (_, none) => {
  keepOnly([], none);
  const { errors } = await readHistory({ after: "1".repeat(64) });
  expect(errors).toMatchObject([{ extensions: { code: "BAD_REQUEST" } }]);
});

it("a list that cannot be true confirms no other endpoint's list: it is asked for again", async () => {
  keepOnly([]);
  const entry = { signature: all[0], slot: 1, err: null, blockTime: null };
  world.sandbox.rpc.faults.add({
    when: isMethod("getSignaturesForAddress"),
    times: 1,
    then: rpcResult([entry, entry]),
  });
  expect((await readHistory()).signatures).toEqual(all);
});

import { beforeEach, describe, expect, it } from "vitest";
import { refuse, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { isMethod } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";
import { transfer } from "../support/faucet.ts";

let world: World;
let pruned: LyingEndpoint;
let second: LyingEndpoint;
/** The signatures of eight transfers, newest first. */
let all: string[];
beforeEach(async () => {
  const started = await startWithLyingEndpoints(2);
  world = started.world;
  [pruned, second] = started.endpoints;
  const { chain } = world.sandbox;
  all = Array.from({ length: 8 }, (_, i) => {
    // Some transfers share a slot.
    if (i % 3 === 0) chain.advanceSlots(1);
    return transfer(chain, world.account("artist001").address, 1_000_000_000n);
  }).reverse();
  chain.advanceSlots(1);
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

it("transactions that the first endpoint lacks in between are merged in, newest first", async () => {
  // Those of one slot.
  const some = all.filter((_, i) => i < 2 || i > 4);
  keepOnly(some);
  expect((await readHistory()).signatures).toEqual(all);
  // An endpoint that fails for a moment is asked again; one that fails for longer is left out.
  const reset = { when: isMethod("getSignaturesForAddress"), then: "reset" } as const;
  second.faults.add({ ...reset, times: 2 });
  expect((await readHistory()).signatures).toEqual(all);
  second.faults.add(reset);
  expect((await readHistory()).signatures).toEqual(some);
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

describe("a listed transaction", () => {
  const reads = ({ calls }: LyingEndpoint) => calls.filter(isMethod("getTransaction")).length;

  it("comes from the first endpoint that returns it, and is then kept", async () => {
    pruned.lie({ getTransaction: (tellTruth, [id]) => (id === all[0] ? null : tellTruth()) });
    for (let i = 0; i < 2; i++) expect((await readHistory()).signatures).toEqual(all);
    expect([reads(pruned), reads(second)]).toEqual([all.length, 1]);
  });

  it("fails its page while no endpoint returns it, as it may be late", async () => {
    for (const endpoint of [pruned, second])
      endpoint.lie({ getTransaction: (tellTruth, [id]) => (id === all[0] ? null : tellTruth()) });
    expect((await readHistory()).errors).toMatchObject([{ extensions: { code: "LOOKUP_FAILED" } }]);
    second.stopLying();
    expect((await readHistory()).signatures).toEqual(all);
  });
});

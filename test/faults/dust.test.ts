import { randomBytes } from "node:crypto";
import { getBase58Decoder } from "@solana/codecs-strings";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let node: LyingEndpoint;
beforeAll(async () => {
  world = await startWorld(async (sandbox) => {
    node = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: node.url };
  });
});
afterAll(async () => {
  await world.close();
  await node.close();
});

const QUERY = `query History($id: String!, $after: String) {
  walletById(socialId: $id) { history(after: $after) { nodes { signature } pageInfo { hasNextPage endCursor } } }
}`;
const DUST = 300;

/**
 * Makes the node list `count` more transactions after the newest one, each like the transaction
 * `dust`.
 */
function repeatDust(dust: string, count: number): void {
  const copies = Array.from({ length: count }, () => getBase58Decoder().decode(randomBytes(64)));
  node.lie({
    getSignaturesForAddress(tellTruth, params) {
      const { before, limit } = params[1] as { before?: string; limit: number };
      params[1] = {};
      const truth: any[] = tellTruth();
      const [newest, ...older] = truth;
      const copied = copies.map((signature) => ({ ...older[0], signature }));
      const all = [newest, ...copied, ...older];
      const start = all.findIndex(({ signature }) => signature === before) + 1;
      return all.slice(start, start + limit);
    },
    getTransaction(tellTruth, params) {
      const [signature] = params;
      if (!copies.includes(signature)) return tellTruth();
      params[0] = dust;
      const truth = tellTruth();
      return { ...truth, transaction: { ...truth.transaction, signatures: [signature] } };
    },
  });
}

it("300 dust transfers hide nothing, and no page costs more than 31 calls because of them", async () => {
  const { chain } = world.sandbox;
  const { id, address } = world.account("creator");
  const first = chain.transfer(address, 1_000_000n);
  const dust = chain.transfer(address, 1n);
  const last = chain.transfer(address, 1_000_000n);
  chain.advanceSlots(1);
  repeatDust(dust, DUST - 1);

  async function readAll() {
    const pages: string[][] = [];
    for (let after: string | null = null; ;) {
      node.calls.length = 0;
      const { body } = await world.graphql(QUERY, { id, after });
      const { nodes, pageInfo }: { nodes: any[]; pageInfo: any } = body.data.walletById.history;
      pages.push(nodes.map(({ signature }) => signature));
      expect(node.calls.filter(isMethod("getSignaturesForAddress"))).toHaveLength(1);
      expect(node.calls.filter(isMethod("getTransaction")).length).toBeLessThanOrEqual(30);
      if (!pageInfo.hasNextPage) return pages;
      after = pageInfo.endCursor;
    }
  }
  const pages = await readAll();
  expect(pages.flat()).toEqual([last, first]);
  expect(pages).toHaveLength(Math.ceil((DUST + 2) / 30));
  // Finalized dust is read only once.
  await readAll();
  expect(node.calls.filter(isMethod("getTransaction"))).toEqual([]);
});

import { getBase58Decoder } from "@solana/codecs-strings";
import { afterEach, describe, expect, it } from "vitest";
import { MIN_LOOKED_AT } from "../../src/chain/history/history.ts";
import type { LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";

let world: World;
let endpoints: LyingEndpoint[];
/** The signatures of two true transfers, newest first. */
let all: string[];

async function start(count: number): Promise<void> {
  ({ world, endpoints } = await startWithLyingEndpoints(count));
  const { chain } = world.sandbox;
  all = [1, 2]
    .map(() => {
      chain.advanceSlots(1);
      return chain.transfer(world.account("artist001").address, 1_000_000_000n);
    })
    .reverse();
  chain.advanceSlots(32);
}
afterEach(async () => {
  await world.close();
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
});

const query = () =>
  world.graphql(
    `query History($id: String!) {
      walletById(socialId: $id) {
        history(first: 20) { nodes { signature lamports } pageInfo { endCursor } }
      }
    }`,
    { id: world.account("artist001").id },
  );

async function readTransfers(): Promise<string[][]> {
  const { body } = await query();
  expect(body.errors).toBeUndefined();
  const { nodes } = body.data.walletById.history;
  return nodes.map(({ signature, lamports }: any) => [signature, lamports]);
}
const readHistory = async () => (await readTransfers()).map(([signature]) => signature);

const inventedSignature = (i: number) => getBase58Decoder().decode(new Uint8Array(64).fill(i + 1));

/**
 * An endpoint invents this many newest transactions. `returns`: whether it also returns them, as
 * copies of a true one.
 */
function invent(liar: LyingEndpoint, count: number, { returns }: { returns: boolean }): string[] {
  const invented = Array.from({ length: count }, (_, i) => inventedSignature(i));
  liar.lie({
    getSignaturesForAddress(tellTruth, [, { limit }]) {
      const truth = tellTruth();
      const lies = invented.map((signature) => ({ ...truth[0], signature }));
      return [...lies, ...truth].slice(0, limit);
    },
    ...(returns && {
      getTransaction(tellTruth, params) {
        const [signature] = params;
        if (!invented.includes(signature)) return tellTruth();
        params[0] = all[0];
        const truth = tellTruth();
        return { ...truth, transaction: { ...truth.transaction, signatures: [signature] } };
      },
    }),
  });
  return invented;
}

describe.each([
  ["preferred", 0],
  ["second", 1],
  ["last", 2],
])("transactions that only the %s of three endpoints lists", (_, index) => {
  it.each([
    ["one that it also returns", 1, true],
    ["one that no endpoint returns", 1, false],
    ["more than a page", 40, true],
  ] as const)("are not shown: %s", async (_name, count, returns) => {
    await start(3);
    invent(endpoints[index]!, count, { returns });
    expect(await readHistory()).toEqual(all);
  });
});

it.each([0, 1, 2])(
  "an invented transaction in the slot in which the lists end fails no page: endpoint %i",
  async (i) => {
    await start(3);
    const { chain } = world.sandbox;
    const { address } = world.account("artist001");
    // All transactions of the lists are in one slot, which is also the slot of their last.
    const newer = Array.from({ length: MIN_LOOKED_AT + 1 }, () =>
      chain.transfer(address, 1_000_000_000n),
    );
    chain.advanceSlots(32);
    const invented = inventedSignature(0);
    endpoints[i]!.lie({
      getSignaturesForAddress(tellTruth, [, { limit }]) {
        const truth = tellTruth();
        return [{ ...truth[0], signature: invented }, ...truth].slice(0, limit);
      },
    });
    expect(await readHistory()).toEqual(newer.toReversed().slice(0, 20));
  },
);

describe("a transaction that only one of two endpoints lists", () => {
  it("is shown while that endpoint returns it, and is not kept", async () => {
    await start(2);
    const [invented] = invent(endpoints[1]!, 1, { returns: true });
    expect(await readHistory()).toEqual([invented, ...all]);
    endpoints[1]!.stopLying();
    invent(endpoints[1]!, 1, { returns: false });
    expect(await readHistory()).toEqual(all);
  });

  it("is left out if no endpoint returns it, and costs one read", async () => {
    await start(2);
    const [invented] = invent(endpoints[1]!, 1, { returns: false });
    expect(await readHistory()).toEqual(all);
    const reads = endpoints[0]!.calls
      .filter(isMethod("getTransaction"))
      .filter(({ params }) => (params as unknown[])[0] === invented);
    expect(reads).toHaveLength(1);
  });

  it("is kept once the other endpoint returns it", async () => {
    await start(2);
    endpoints[0]!.lie({ getSignaturesForAddress: (tellTruth) => tellTruth().slice(1) });
    for (let i = 0; i < 2; i++) expect(await readHistory()).toEqual(all);
    expect(endpoints[0]!.calls.filter(isMethod("getTransaction"))).toHaveLength(2);
    expect(endpoints[1]!.calls.filter(isMethod("getTransaction"))).toHaveLength(2);
  });
});

const overstate = (liar: LyingEndpoint) => {
  liar.lie({
    getTransaction(tellTruth) {
      const truth = tellTruth();
      const { postBalances } = truth.meta;
      const more = postBalances.map((lamports: any) => Number(lamports) + 777_000_000_000);
      return { ...truth, meta: { ...truth.meta, postBalances: more } };
    },
  });
};

it.each([0, 1, 2])("amounts that only endpoint %i of three reports are not shown", async (i) => {
  await start(3);
  overstate(endpoints[i]!);
  expect(await readTransfers()).toEqual(all.map((signature) => [signature, "1000000000"]));
});

it("amounts about which two endpoints differ are not shown", async () => {
  await start(2);
  overstate(endpoints[0]!);
  const { body } = await query();
  expect([body.data.walletById.history, body.errors[0].extensions.code]).toEqual([
    null,
    "LOOKUP_FAILED",
  ]);
  endpoints[0]!.stopLying();
  expect(await readHistory()).toEqual(all);
});

it.each([0, 1, 2])(
  "amounts that only endpoint %i reports are not shown while the two others fail for a moment",
  async (i) => {
    await start(3);
    overstate(endpoints[i]!);
    for (const { faults } of endpoints.filter((endpoint) => endpoint !== endpoints[i]))
      faults.add({ then: "reset", when: isMethod("getTransaction"), times: all.length });
    expect(await readTransfers()).toEqual(all.map((signature) => [signature, "1000000000"]));
  },
);

it("a transfer that one of two endpoints calls failed is not left out while the other recovers", async () => {
  await start(2);
  const [liar, honest] = endpoints;
  liar!.lie({
    getTransaction(tellTruth) {
      const truth = tellTruth();
      return { ...truth, meta: { ...truth.meta, err: "AccountInUse" } };
    },
  });
  honest!.faults.add({ then: "reset", when: isMethod("getTransaction"), times: 8 });
  const { body } = await query();
  expect(body.errors[0].extensions.code).toBe("LOOKUP_FAILED");
  liar!.stopLying();
  expect(await readHistory()).toEqual(all);
});

it("coins and times that only the preferred of three endpoints reports are not shown", async () => {
  await start(3);
  const mint = newMint();
  const { address, id } = world.account("newcomer");
  world.sandbox.coins.launch({ mint, creator: address, fees: 1_000_000_000n });
  await world.collect(id, {}, [mint]);
  endpoints[0]!.lie({
    getTransaction(tellTruth) {
      const truth = tellTruth();
      const { message } = truth.transaction;
      for (const each of message.instructions) each.accounts = each.accounts.map(() => 1);
      const meta = { ...truth.meta, innerInstructions: [] };
      return { ...truth, meta, blockTime: 1_000_000_000 };
    },
  });
  const { body } = await world.graphql(
    `query History($id: String!) {
      walletById(socialId: $id) { history(first: 1) { nodes { kind at mints } } }
    }`,
    { id },
  );
  const [transfer] = body.data.walletById.history.nodes;
  expect(transfer).toMatchObject({ kind: "COLLECTED", mints: [mint] });
  expect(new Date(transfer.at).getFullYear()).toBeGreaterThan(2001);
});

it("a block's time that only the preferred of three endpoints reports hides no last collect", async () => {
  await start(3);
  endpoints[0]!.lie({
    getTransaction(tellTruth) {
      const truth = tellTruth();
      return truth && { ...truth, blockTime: 1_000_000_000 };
    },
  });
  const collect = async () => (await world.collect(world.account("creator").id)).body;
  const { txSignature } = await collect();
  expect((await collect()).lastCollect).toMatchObject({ txSignature });
});

it("amounts of the only endpoint that returns transactions are shown", async () => {
  await start(2);
  endpoints[0]!.faults.add({ then: "reset", when: isMethod("getTransaction") });
  expect(await readHistory()).toEqual(all);
});

it.each([0, 1, 2])(
  "transfers that only endpoint %i calls failed, or leaves out while the others fail for a moment, are shown",
  async (i) => {
    await start(3);
    const liar = endpoints[i]!;
    liar.lie({
      getSignaturesForAddress: (tellTruth) =>
        tellTruth().map((each: any) => ({ ...each, err: "AccountInUse" })),
    });
    expect(await readHistory()).toEqual(all);
    liar.lie({ getSignaturesForAddress: () => [] });
    for (const { faults } of endpoints.filter((endpoint) => endpoint !== liar))
      faults.add({ then: "reset", when: isMethod("getSignaturesForAddress"), times: 1 });
    expect(await readHistory()).toEqual(all);
  },
);

import { afterAll, beforeEach, describe, expect } from "vitest";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { addCreatorFees, transfer } from "../support/faucet.ts";
import { chain, withWorld, world } from "../support/fixtures.ts";
import { isMethod } from "../support/sandbox.ts";

let node: LyingEndpoint;
const it = withWorld(async (sandbox) => {
  node = await startLyingEndpoint(sandbox);
  return { SOLANA_RPC_URL: node.url };
});
/** Each test has an account of its own, with an empty address and vault. */
let account: SandboxAccount;
let tests = 0;
beforeEach(() => {
  account = world.account(`artist${String(++tests).padStart(3, "0")}`);
  chain.setBalance(account.address, 0n);
  chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0));
  node.stopLying();
  node.faults.clear();
  node.calls.length = 0;
});
afterAll(() => node.close());

const FIELDS = `nodes { kind amount lamports signature at }
  edges { cursor node { signature } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }`;
const QUERY = `query History($id: String!, $first: Int, $after: String) {
  walletById(socialId: $id) { history(first: $first, after: $after) { ${FIELDS} } }
}`;
const SOL = 10n ** 9n;

async function history(page: { first?: number; after?: string } = {}) {
  const { body } = await world.graphql(QUERY, { id: account.id, ...page });
  expect(body.errors).toBeUndefined();
  return body.data.walletById.history;
}
const kinds = async (page = {}) => (await history(page)).nodes.map(({ kind }: any) => kind);
const callsTo = (name: string) => node.calls.filter(isMethod(name)).length;

/** Sends lamports to the address, as anyone can. */
function send(lamports: bigint): string {
  return transfer(chain, account.address, lamports);
}
const finalize = () => {
  chain.advanceSlots(1);
};
function addFees(lamports: bigint): void {
  addCreatorFees(chain, account.address, lamports);
}
const collect = async () => (await world.collect(account.id)).body;

describe("the history of a wallet", () => {
  it("shows what was collected, received and withdrawn, newest first, with exact amounts and times", async () => {
    const received = send(2n * SOL);
    addFees(SOL);
    const { txSignature } = await collect();
    const withdrawn = send(3n * SOL);
    finalize();
    // Only the escrow program, which the sandbox does not have, can take from the address.
    node.lie({
      getTransaction(tellTruth, [signature]) {
        const { meta, ...truth } = tellTruth();
        const { preBalances, postBalances } = meta;
        return signature === withdrawn
          ? {
              ...truth,
              blockTime: null,
              meta: { ...meta, preBalances: postBalances, postBalances: preBalances },
            }
          : { ...truth, meta };
      },
    });
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
    const { nodes, edges, pageInfo } = await history();
    expect(nodes).toEqual([
      {
        kind: "WITHDRAWN",
        amount: "3.0000",
        lamports: "3000000000",
        signature: withdrawn,
        at: null,
      },
      { kind: "COLLECTED", amount: "1.0000", lamports: "1000000000", signature: txSignature, at },
      { kind: "RECEIVED", amount: "2.0000", lamports: "2000000000", signature: received, at },
    ]);
    expect(edges.map(({ cursor }: any) => cursor)).toEqual([withdrawn, txSignature, received]);
    expect(pageInfo).toEqual({
      hasNextPage: false,
      hasPreviousPage: false,
      startCursor: withdrawn,
      endCursor: received,
    });
  });

  it("of an address that nobody has used is empty", async () => {
    expect(await history()).toMatchObject({
      nodes: [],
      pageInfo: { hasNextPage: false, startCursor: null, endCursor: null },
    });
  });

  it("leaves out dust and failed transactions, and goes on behind them", async () => {
    const real = send(SOL);
    for (let i = 0; i < 35; i++) send(99_999n);
    finalize();
    const first = await history();
    expect(first).toMatchObject({
      nodes: [],
      pageInfo: { hasNextPage: true, hasPreviousPage: false },
    });
    expect([callsTo("getSignaturesForAddress"), callsTo("getTransaction")]).toEqual([1, 30]);
    const next = await history({ after: first.pageInfo.endCursor });
    expect(next.nodes).toMatchObject([{ kind: "RECEIVED", signature: real }]);
    expect(next.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: true });

    node.lie({
      getSignaturesForAddress: (tellTruth) =>
        tellTruth().map((each: any) => ({ ...each, err: { a: 1 } })),
    });
    node.calls.length = 0;
    expect(await kinds()).toEqual([]);
    expect(callsTo("getTransaction")).toBe(0);
  });

  it("shows what a transaction did that names the address and the vault in a lookup table", async () => {
    send(2n * SOL);
    addFees(SOL);
    await collect();
    finalize();
    const { nodes } = await history();
    const isLoaded = (key: string) => key === account.address || key === account.creatorVault;
    node.lie({
      getTransaction(tellTruth) {
        const { transaction, meta, ...truth } = tellTruth();
        const keys: string[] = transaction.message.accountKeys;
        const loaded = keys.filter(isLoaded);
        const accountKeys = keys.filter((key) => !isLoaded(key));
        const order = [...accountKeys, ...loaded].map((key) => keys.indexOf(key));
        const move = (index: number) => order.indexOf(index);
        const instructions = transaction.message.instructions.map((each: any) => ({
          programIdIndex: move(each.programIdIndex),
          accounts: each.accounts.map(move),
        }));
        return {
          ...truth,
          version: 0,
          transaction: { ...transaction, message: { accountKeys, instructions } },
          meta: {
            ...meta,
            preBalances: order.map((i) => meta.preBalances[i]),
            postBalances: order.map((i) => meta.postBalances[i]),
            innerInstructions: [],
            loadedAddresses: { writable: loaded, readonly: [] },
          },
        };
      },
    });
    expect(nodes).toHaveLength(2);
    expect((await history()).nodes).toEqual(nodes);
  });

  it("is a bad request after a transaction that does not exist", async () => {
    send(SOL);
    finalize();
    const { body } = await world.graphql(QUERY, { id: account.id, after: "5".repeat(87) });
    expect(body.errors).toMatchObject([{ extensions: { code: "BAD_REQUEST" } }]);
    expect(callsTo("getSignaturesForAddress")).toBe(1);
  });

  it("comes in pages without a gap or an overlap, while new transfers arrive", async () => {
    const sent = Array.from({ length: 25 }, () => send(SOL));
    finalize();
    const seen: string[] = [];
    for (let page: { first: number; after?: string } = { first: 7 }; ;) {
      const { nodes, pageInfo } = await history(page);
      seen.push(...nodes.map(({ signature }: any) => signature));
      if (!pageInfo.hasNextPage) break;
      page = { first: 7, after: pageInfo.endCursor };
      send(SOL);
      finalize();
    }
    expect(seen).toEqual(sent.toReversed());
  });

  it.each([
    [
      "another transaction",
      "getTransaction",
      (truth: any) => ({
        ...truth,
        transaction: { ...truth.transaction, signatures: ["1".repeat(64)] },
      }),
    ],
    [
      "too few balances",
      "getTransaction",
      (truth: any) => ({
        ...truth,
        meta: { ...truth.meta, postBalances: [1] },
      }),
    ],
    [
      "more than it was asked for",
      "getSignaturesForAddress",
      ([one]: any) =>
        Array.from({ length: 102 }, (_, i) => ({
          ...one,
          signature: "1".repeat(64 + (i % 20)) + "2".repeat(i % 5),
        })),
    ],
  ] as const)("is LOOKUP_FAILED when a node returns %s", async (_name, method, lie) => {
    send(SOL);
    finalize();
    send(SOL);
    finalize();
    await world.lookup(account.handle);
    node.lie({ [method]: (tellTruth) => lie(tellTruth()) });
    const { body } = await world.graphql(QUERY, { id: account.id });
    expect(body.data).toEqual({ walletById: { history: null } });
    expect(body.errors).toMatchObject([
      { path: ["walletById", "history"], extensions: { code: "LOOKUP_FAILED" } },
    ]);
  });

  it.each<[string, (list: any[]) => unknown]>([
    ["a signature twice", ([one, ...others]) => [one, one, ...others]],
    ["the oldest first", (list) => list.toReversed()],
    ["an impossible slot", ([one, ...others]) => [{ ...one, slot: 10 ** 12 }, ...others]],
  ])("is right although a list has %s", async (_name, lie) => {
    send(SOL);
    finalize();
    send(2n * SOL);
    finalize();
    const truth = await history();
    expect(truth.nodes).toHaveLength(2);
    node.lie({ getSignaturesForAddress: (tellTruth) => lie(tellTruth()) });
    expect(await history()).toEqual(truth);
  });
});

describe("a page of a history", () => {
  it.each([
    { first: 0 },
    { first: -1 },
    { after: "" },
    { after: "0OIl" },
    { after: "1".repeat(63) },
    { after: "z".repeat(5_000) },
  ])("of %j is a bad request, and reads nothing", async (page) => {
    const { status, body } = await world.graphql(QUERY, { id: "1", ...page });
    expect(status).toBe(200);
    expect(body.errors).toMatchObject([{ extensions: { code: "BAD_REQUEST" } }]);
    expect(callsTo("getSignaturesForAddress")).toBe(0);
  });

  it("has 10 transfers unless it says otherwise, also for null", async () => {
    for (let i = 0; i < 11; i++) send(SOL);
    finalize();
    for (const page of [{}, { first: null as never, after: null as never }])
      expect(await kinds(page)).toHaveLength(10);
    expect(await kinds({ first: 100 })).toHaveLength(11);
  });

  it("above 100 transfers for one operation is a bad request, and reads nothing", async () => {
    const { body } = await world.graphql(`{ wallets(handles: ["creator", "dusty"]) {
      a: history(first: 41) { nodes { kind } } b: history { nodes { kind } }
    } }`);
    expect(body.errors).toMatchObject([
      {
        message: "Too many transfers: the maximum is 100 per operation.",
        extensions: { code: "BAD_REQUEST" },
      },
    ]);
    expect(callsTo("getSignaturesForAddress")).toBe(0);
  });
});

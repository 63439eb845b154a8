import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { collectCreatorFee } from "../../src/chain/launchpad/instructions.ts";
import { addCreatorFees } from "../../src/sandbox/chain/creator-fees.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { toTransactionInstruction } from "../support/launchpad-instructions.ts";
import { eventually } from "../support/eventually.ts";
import { hold, isMethod, isLook } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let node: LyingEndpoint;
/** Each test has an account of its own, with an empty address and vault. */
let account: SandboxAccount;
let tests = 0;
beforeAll(async () => {
  world = await startWorld(async (sandbox) => {
    node = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: node.url };
  });
});
beforeEach(() => {
  const { chain } = world.sandbox;
  account = world.account(`artist${String(++tests).padStart(3, "0")}`);
  chain.setBalance(account.address, 0n);
  chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0));
  node.stopLying();
  node.faults.clear();
  node.calls.length = 0;
});
afterAll(async () => {
  await world.close();
  await node.close();
});

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
  return world.sandbox.chain.transfer(account.address, lamports);
}
const finalize = () => {
  world.sandbox.chain.advanceSlots(1);
};
function addFees(lamports: bigint): void {
  addCreatorFees(world.sandbox.chain, account.address, lamports);
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

  it("has the collect of a caller whose connection broke", async () => {
    send(SOL);
    addFees(SOL);
    const { id, address } = account;
    const release = hold(node, isLook);
    const aborted = new AbortController();
    const lost = fetch(`${world.url}/collect`, {
      method: "POST",
      body: JSON.stringify({ socialId: id }),
      signal: aborted.signal,
    });
    await eventually(() => {
      expect(callsTo("getTransaction")).toBeGreaterThan(0);
    });
    aborted.abort();
    await expect(lost).rejects.toThrow();
    release();
    await world.gateway.settled();
    expect(await kinds({ first: 1 })).toEqual(["COLLECTED"]);
    expect(world.sandbox.chain.balance(address)).toBe(2n * SOL);
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

  it("shows what arrived from an account that holds more than JSON can state exactly", async () => {
    send(SOL);
    finalize();
    node.lie({
      getTransaction(tellTruth) {
        const { meta, ...truth } = tellTruth();
        const [, ...preBalances] = meta.preBalances;
        const [, ...postBalances] = meta.postBalances;
        const sender = 2 ** 60;
        return {
          ...truth,
          meta: {
            ...meta,
            preBalances: [sender, ...preBalances],
            postBalances: [sender, ...postBalances],
          },
        };
      },
    });
    expect(await kinds()).toEqual(["RECEIVED"]);
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

  it("has collects of both versions of transactions, with exact amounts", async () => {
    addFees(SOL);
    const first = await collect();
    addFees(2n * SOL);
    const instruction = toTransactionInstruction(collectCreatorFee(account));
    // Anyone may collect.
    const signature = world.sandbox.chain.sendFromFaucet(() => [instruction]);
    finalize();
    const versions = [first.txSignature, signature].map(
      (each) => world.sandbox.chain.landed(each)!.message.version,
    );
    expect(versions).toEqual([1, "legacy"]);
    expect((await history()).nodes).toMatchObject([
      { kind: "COLLECTED", amount: "2.0000", signature },
      { kind: "COLLECTED", amount: "1.0000", signature: first.txSignature },
    ]);
  });

  it("fails alone while the chain cannot be read", async () => {
    send(SOL);
    finalize();
    node.faults.add({ when: isMethod("getTransaction"), then: "reset" });
    const { body } = await world.graphql(QUERY, { id: account.id });
    expect(body.data).toEqual({ walletById: { history: null } });
    expect(body.errors).toMatchObject([
      { path: ["walletById", "history"], extensions: { code: "LOOKUP_FAILED" } },
    ]);
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
    ["a transaction that no node has", "getTransaction", () => null],
    [
      "text that is no signature",
      "getSignaturesForAddress",
      ([one]: any) => [{ ...one, signature: "<b>" }],
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
    expect(body.errors).toMatchObject([{ extensions: { code: "LOOKUP_FAILED" } }]);
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
  const ask = (
    query: string,
    variables?: Record<string, unknown>,
    headers?: Record<string, string>,
  ) => world.graphql(query, variables, headers);
  const codes = ({ body }: { body: any }) =>
    body.errors?.map(({ extensions }: any) => extensions.code);

  it.each([
    { first: 0 },
    { first: -1 },
    { after: "" },
    { after: "0OIl" },
    { after: "1".repeat(63) },
    { after: "z".repeat(5_000) },
  ])("of %j is a bad request, and reads nothing", async (page) => {
    // Parsed, then from the cache.
    for (let i = 0; i < 3; i++) {
      const answer = await ask(QUERY, { id: "1", ...page });
      expect([answer.status, codes(answer)]).toEqual([200, ["BAD_REQUEST"]]);
    }
    expect(callsTo("getSignaturesForAddress")).toBe(0);
  });

  it("has 10 transfers unless it says otherwise, also for null", async () => {
    for (let i = 0; i < 11; i++) send(SOL);
    finalize();
    for (const page of [{}, { first: null as never, after: null as never }])
      expect(await kinds(page)).toHaveLength(10);
    expect(await kinds({ first: 100 })).toHaveLength(11);
  });

  const LISTED =
    "query Listed($ids: [String!]!, $n: Int) { wallets(handles: $ids) { history(first: $n) { nodes { kind } } } }";

  it.each([
    [
      "in one wallet",
      '{ wallet(handle: "creator") { history(first: 101) { nodes { kind } } } }',
      {},
    ],
    ["in a variable", QUERY, { id: "1", first: 101 }],
    [
      "in aliases",
      '{ wallet(handle: "creator") { a: history(first: 60) { nodes { kind } } b: history(first: 41) { nodes { kind } } } }',
      {},
    ],
    [
      "by default, in a list",
      '{ wallets(handles: ["a","b","c","d","e","f","g","h","i","j","k"]) { history { nodes { kind } } } }',
      {},
    ],
    [
      "in a list in a variable",
      "query Q($ids: [String!]!) { wallets(handles: $ids) { history(first: 51) { nodes { kind } } } }",
      { ids: ["a", "b"] },
    ],
  ])(
    "counts transfers %s: above 100 for one operation, nothing runs",
    async (_name, query, variables) => {
      const { body } = await ask(query, variables);
      expect(body.errors).toMatchObject([
        {
          message: "Too many transfers: the maximum is 100 per operation.",
          extensions: { code: "BAD_REQUEST" },
        },
      ]);
      expect(node.calls.filter(isMethod("getSignaturesForAddress"))).toEqual([]);
    },
  );

  it("costs a request more for each wallet whose history it reads, and for each 25 transactions above 30, each time", async () => {
    const left = async (query: string, variables: Record<string, unknown>, address: string) => {
      const { headers } = await ask(query, variables, { "x-forwarded-for": address });
      return Number(/r=(\d+)/.exec(headers.get("ratelimit")!)![1]);
    };
    const NO_HISTORY = "query Plain($ids: [String!]!) { wallets(handles: $ids) { address } }";
    // Parsed, then cached: both take the same.
    const cases: [query: string, variables: Record<string, unknown>, costs: number][] = [
      [LISTED, { ids: ["creator", "dusty", "newcomer"], n: 1 }, 4],
      [QUERY, { id: "1" }, 2],
      [QUERY, { id: "1", first: 30 }, 2],
      [QUERY, { id: "1", first: 31 }, 3],
      [QUERY, { id: "1", first: 100 }, 5],
      [NO_HISTORY, { ids: ["creator", "dusty"] }, 1],
    ];
    for (const [i, [query, variables, costs]] of cases.entries()) {
      const address = `198.51.100.${i}`;
      expect(await left(query, variables, address)).toBe(20 - costs);
      expect(await left(query, variables, address)).toBe(20 - 2 * costs);
    }
    const refused = await ask(LISTED, { ids: Array(100).fill("creator"), n: 1 });
    expect([refused.status, codes(refused)]).toEqual([400, ["BAD_REQUEST"]]);
  });
});

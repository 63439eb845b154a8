import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listTransactions } from "../../../src/chain/history/list-transactions.ts";
import { startPlainNodes, type PlainNode } from "../../support/doubles/plain-nodes.ts";
import { rpcAccounts, rpcError, rpcResult } from "../../support/rpc-answers.ts";
import { isMethod } from "../../support/sandbox.ts";
import { readPrice } from "../../../src/chain/units/priority-fee.ts";

const SLOT = 10_000;

let started: Awaited<ReturnType<typeof startPlainNodes>>;
let client: ReturnType<typeof started.createClient>;
let first: PlainNode;
let second: PlainNode;
/** How many turns calls have asked for. */
let turns = 0;
beforeEach(async () => {
  started = await startPlainNodes(2);
  [first, second] = started.nodes as [PlainNode, PlainNode];
  await createClient();
});
afterEach(() => started.close());

/** A client that knows the cluster and the state of both endpoints. */
async function createClient(options: Parameters<typeof started.createClient>[0] = {}) {
  const takeTurn = () => {
    turns++;
    return Promise.resolve();
  };
  client = started.createClient({ takeTurn, ...options });
  await client.readClusters();
  await started.takeCalls();
  turns = 0;
}
/** The calls for callers, without those in the background. */
const takeCalls = async () =>
  (await started.takeCalls()).filter((call) => !call.endsWith(" state"));
function answerAll(then: ReturnType<typeof rpcResult>): void {
  for (const { faults } of started.nodes) faults.add({ then });
}

describe("a call to the chain", () => {
  it("waits for its turn, but not for a blockhash: collects share this read", async () => {
    await client.getSlot();
    expect(turns).toBe(1);
    await client.getLatestBlockhash();
    expect(turns).toBe(1);
  });

  it.each([
    ["a closed connection", "reset" as const],
    ["a truncated answer", "cut" as const],
    ["a call that hangs", "hang" as const],
    ["429", { status: 429, body: "Too many" }],
    ["a JSON-RPC error 429", rpcError({ code: 429 })],
    ["401", { status: 401, body: "{}" }],
    ["HTML", { status: 200, body: "<html>" }],
    ["a result of the wrong type", rpcResult("seven")],
    ["an answer to another call", { status: 200, body: '{"jsonrpc":"2.0","id":1,"result":8}' }],
    ["an internal error", rpcError({ code: -32603 })],
    ["a provider's limit as -32600", rpcError({ code: -32600 })],
    ["a provider's limit as -32602", rpcError({ code: -32602 })],
    ["a provider's limit as 413", { status: 413, body: "" }],
    ["a node that is behind", rpcError({ code: -32005 })],
    ["a request that it cannot parse", rpcError({ code: -32700 })],
    ["a failed preflight", rpcError({ code: -32002 })],
    // As of a node that cannot read the call.
    [
      "an error without an id",
      { status: 200, body: '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}' },
    ],
  ])("goes to the next endpoint on %s", async (_name, then) => {
    if (then === "hang") await createClient({ rpcTimeoutMs: 5_000 });
    first.faults.add({ then });
    expect(await client.getSlot()).toBe(SLOT);
    expect(await takeCalls()).toEqual(["0 getSlot", "1 getSlot"]);
  });

  it("is made once at each endpoint if none serves it, and keeps the code of their error", async () => {
    answerAll(rpcError({ code: -32011 }));
    await expect(client.getSlot()).rejects.toMatchObject({
      ...{ name: "RpcError", failure: "error", code: -32011, method: "getSlot" },
    });
    expect(await takeCalls()).toEqual(["0 getSlot", "1 getSlot"]);
  });

  it("tells a cursor that no endpoint knows from the last page, and no endpoint backs off", async () => {
    for (const { faults } of started.nodes) {
      faults.add({ when: ({ params }) => params[0] === "unknown", then: rpcResult(null) });
      faults.add({
        when: isMethod("getSignaturesForAddress"),
        then: rpcError({ code: -32020 }),
      });
    }
    const page = listTransactions(client, "address", { before: "unknown", limit: 1, minSlot: 0 });
    expect(await page).toBeUndefined();
    expect(await takeCalls()).toHaveLength(4);
    for (const { faults } of started.nodes) faults.clear();
    await client.getSlot();
    expect(await takeCalls()).toEqual(["0 getSlot"]);
  });

  it("sends the user and password of a URL as a header, and leaves them out of errors", async () => {
    let authorization: string | undefined;
    first.faults.add({
      then(request) {
        ({ authorization } = request.headers);
        return rpcError({ code: 1, message: "p:ss", data: "key-in-the-path" })(request);
      },
    });
    const { host } = new URL(first.url);
    const url = `http://us%40er:p%3Ass@${host}/key-in-the-path`;
    const error: unknown = await started
      .createClient({ urls: [url] })
      .getSlot()
      .catch((reason: unknown) => reason);
    expect(authorization).toBe(`Basic ${Buffer.from("us@er:p:ss").toString("base64")}`);
    expect(JSON.stringify({ ...(error as object), message: (error as Error).message })).not.toMatch(
      /p:ss|key-in/,
    );
  });

  const account = { lamports: 1, data: ["", "base64"] };

  it("counts lamports that may have lost digits as 2^53 - 1, and blames no endpoint for them", async () => {
    answerAll(rpcAccounts(SLOT, { ...account, lamports: 2 ** 60 }));
    const lamports = BigInt(Number.MAX_SAFE_INTEGER);
    await expect(client.getAccounts(["x"])).resolves.toMatchObject([{ lamports }]);
    expect(await takeCalls()).toEqual(["0 getMultipleAccounts"]);
  });

  it("counts a price that is too large for a number as 2^53 - 1", async () => {
    answerAll(rpcResult([{ slot: 1, prioritizationFee: 2 ** 64 }]));
    expect(await readPrice(client, ["x"])).toBe(BigInt(Number.MAX_SAFE_INTEGER));
    expect(await takeCalls()).toEqual(["0 getRecentPrioritizationFees"]);
  });

  it.each<[string, object]>([
    ["the accounts", { accounts: null }],
    ["one account", { accounts: [] }],
    ["what the fee payer holds", { accounts: [null] }],
    ["the compute units", { unitsConsumed: null }],
    ["the compute units, as 0", { unitsConsumed: 0 }],
    ["the error", { err: undefined }],
  ])("goes to the next endpoint if a simulation omits %s", async (_name, omitted) => {
    const value = { err: null, unitsConsumed: 1, accounts: [account], ...omitted };
    first.faults.add({ then: rpcResult({ context: { slot: SLOT }, value }) });
    await client.simulateTransaction("", { addresses: ["x"], minSlot: 0 });
    expect(await takeCalls()).toEqual(["0 simulateTransaction", "1 simulateTransaction"]);
  });

  it.each<[string, unknown]>([
    ["a number instead of members", 1],
    ["no lamports", { data: ["", "base64"] }],
    ["negative lamports", { ...account, lamports: -1 }],
    ["a fraction of a lamport", { ...account, lamports: 0.5 }],
    ["lamports as a string", { ...account, lamports: "1" }],
    ["no data", { lamports: 1 }],
    ["data in another encoding", { ...account, data: ["", "base58"] }],
    ["data that is not text", { ...account, data: [1, "base64"] }],
    ["an owner that is not text", { ...account, owner: 1 }],
    ["a negative space", { ...account, space: -1 }],
    ["an executable that is not a boolean", { ...account, executable: 1 }],
  ])("rejects an account with %s as unreadable", async (_name, value) => {
    answerAll(rpcAccounts(SLOT, value));
    await expect(client.getAccounts(["x"])).rejects.toThrow("unreadable");
  });

  it("rejects a response without one account per key, or one status per signature", async () => {
    answerAll(rpcResult({ context: { slot: SLOT }, value: [] }));
    await expect(client.getAccounts(["x"])).rejects.toThrow("unreadable");
    await expect(client.findLanded(["x"])).rejects.toThrow("unreadable");
  });
});

describe("transactions that have landed", () => {
  const status = (confirmationStatus: string) => ({ slot: 3, err: null, confirmationStatus });
  const statuses = (...value: (object | null)[]) => rpcResult({ context: { slot: SLOT }, value });
  const find = async (...signatures: string[]) => [...(await client.findLanded(signatures))];

  it("are also those that only the next endpoint reports as final", async () => {
    const final = status("finalized");
    first.faults.add({ then: statuses(final, null, status("confirmed"), null) });
    second.faults.add({ then: statuses(null, final, null, null) });
    expect(await find("a", "b", "c", "d")).toEqual(["a", "b"]);
    const calls = ["0 getSignatureStatuses", "1 getSignatureStatuses"];
    expect(await takeCalls()).toEqual(calls);
  });

  it("are the first endpoint's if all have, or the next one fails", async () => {
    first.faults.add({ then: statuses(status("finalized")), times: 1 });
    expect(await find("a")).toEqual(["a"]);
    expect(await takeCalls()).toEqual(["0 getSignatureStatuses"]);
    first.faults.add({ then: statuses(status("finalized"), null) });
    second.faults.add({ then: "reset" });
    expect(await find("a", "b")).toEqual(["a"]);
  });
});

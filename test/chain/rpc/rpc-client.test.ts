import { withFaults, type FaultyServer } from "../../support/faults.ts";
import { listTransactions } from "../../../src/chain/history/list-transactions.ts";
import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RpcError } from "../../../src/chain/rpc/rpc-error.ts";
import { createRpc } from "../../../src/chain/rpc/rpc-client.ts";
import { createLogger } from "../../../src/observability/log.ts";
import { createCallUpstream } from "../../../src/upstream/http.ts";
import { createLoopbackServer } from "../../../src/sandbox/loopback-server.ts";
import { CLOCK_SYSVAR } from "../../../src/chain/primitives/clock.ts";
import { rpcAccounts, rpcError, rpcResult } from "../../support/rpc-answers.ts";

/** How many turns calls have asked for. */
let turns = 0;
function countTurn(): undefined {
  turns++;
}
type Node = FaultyServer<{ authorization: string | undefined; params: unknown[] }>;
let nodes: Node[] = [];

const isGenesisHash = (body: string) => body.includes("getGenesisHash");
const isStateRead = (body: string) => body.includes(`[["${CLOCK_SYSVAR}"]`);
/** Any call except the checks of the cluster and the state, which are not recorded. */
const isCall = () => true;

beforeEach(async () => {
  const startNode = async () => {
    const server = await createLoopbackServer({
      port: 0,
      handle(request) {
        const state = { context: { slot: 7 }, value: [null] };
        const result = isGenesisHash(request.body)
          ? "genesis"
          : isStateRead(request.body)
            ? state
            : 7;
        return rpcResult(result)(request);
      },
    });
    return withFaults(server, ({ headers, body }) =>
      isGenesisHash(body) || isStateRead(body)
        ? undefined
        : { authorization: headers.authorization, params: JSON.parse(body).params },
    );
  };
  nodes = await Promise.all([startNode(), startNode()]);
});
afterEach(() => Promise.all(nodes.map((node) => node.close())));

/**
 * An endpoint counts as slow after a tenth of the timeout, so the default is long enough for any
 * machine.
 */
const newClient = (urls: string[], rpcTimeoutMs = 60_000) =>
  createRpc({
    chainCallPlan: { turn: countTurn, count: () => undefined },
    urls: urls.map((url) => new URL(url)),
    rpcTimeoutMs,
    callUpstream: createCallUpstream(new Registry()),
    log: createLogger("silent"),
    retryMs: 1,
  });
/** A client that knows the slots of both nodes. */
async function startClient(rpcTimeoutMs?: number) {
  const client = newClient(
    nodes.map(({ url }) => url),
    rpcTimeoutMs,
  );
  await client.readClusters();
  for (const node of nodes) node.calls.length = 0;
  return client;
}
const calls = () => nodes.map((node) => node.calls.length);

let client: ReturnType<typeof newClient>;
beforeEach(async () => {
  // Stands still, so that no node is asked for its slot again.
  vi.spyOn(performance, "now").mockReturnValue(0);
  client = await startClient();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("a call to the chain", () => {
  it("waits for its turn, but not for a blockhash: collects share this read", async () => {
    turns = 0;
    await client.getSlot();
    expect(turns).toBe(1);
    nodes[0]!.faults.add({ when: isCall, then: rpcError({ code: -1, message: "no" }), times: 2 });
    await expect(client.getLatestBlockhash()).rejects.toThrow(RpcError);
    expect(turns).toBe(1);
  });

  it("goes to the preferred endpoint", async () => {
    expect(await client.getSlot()).toBe(7);
    expect(calls()).toEqual([1, 0]);
  });

  it.each([
    ["a closed connection", "reset" as const],
    ["a truncated answer", "cut" as const],
    ["a call that hangs", "hang" as const],
    ["429", { status: 429, body: "Too many" }],
    ["429 with a JSON-RPC body", rpcError({ code: -1, message: "limit" }, 429)],
    ["a JSON-RPC error 429", rpcError({ code: 429, message: "limit" })],
    ["503", { status: 503, body: "" }],
    ["401", { status: 401, body: "{}" }],
    ["HTML", { status: 200, body: "<html>" }],
    ["a result of the wrong type", rpcResult("seven")],
    ["an answer to another call", { status: 200, body: '{"jsonrpc":"2.0","id":1,"result":8}' }],
    ["an internal error", rpcError({ code: -32603, message: "internal" })],
    ["a provider's limit as -32600", rpcError({ code: -32600, message: "Too large" })],
    ["a provider's limit as -32602", rpcError({ code: -32602, message: "Too many inputs" })],
    ["a provider's limit as 413", { status: 413, body: "" }],
    ["a missing method", rpcError({ code: -32601, message: "Method not found" })],
    [
      "a node without history",
      rpcError({ code: -32011, message: "Transaction history is not available" }),
    ],
    ["a node that is behind", rpcError({ code: -32005, message: "behind" })],
    ["a request that it cannot parse", rpcError({ code: -32700, message: "Parse error" })],
    ["a failed preflight", rpcError({ code: -32002, message: "simulation failed" })],
    ["a version that it cannot read", rpcError({ code: -32015, message: "unsupported" })],
  ])("goes to the next endpoint on %s", async (_name, then) => {
    if (then === "hang") client = await startClient(5_000);
    nodes[0]!.faults.add({ when: isCall, then });
    expect(await client.getSlot()).toBe(7);
    expect(calls()).toEqual([1, 1]);
  });

  it("keeps the code of an error that every endpoint returns", async () => {
    for (const { faults } of nodes) faults.add({ when: isCall, then: rpcError({ code: -32011 }) });
    await expect(client.getSlot()).rejects.toMatchObject({
      ...{ name: "RpcError", failure: "error", code: -32011, method: "getSlot" },
    });
  });

  it("tells a cursor that no endpoint knows from the last page, and no endpoint backs off", async () => {
    for (const { faults } of nodes) {
      faults.add({ when: ({ params }) => params[0] === "unknown", then: rpcResult(null) });
      faults.add({ when: isCall, then: rpcError({ code: -32020 }) });
    }
    const page = listTransactions(client, "address", { before: "unknown", limit: 1, minSlot: 0 });
    expect(await page).toBeUndefined();
    expect(calls()).toEqual([2, 2]);
    for (const { faults } of nodes) faults.clear();
    await client.getSlot();
    expect(calls()).toEqual([3, 2]);
  });

  it("fails with the last endpoint's failure when all fail", async () => {
    nodes[0]!.faults.add({ when: isCall, then: "reset" });
    nodes[1]!.faults.add({ when: isCall, then: { status: 503, body: "" } });
    await expect(client.getSlot()).rejects.toMatchObject({ failure: "status", code: 503 });
  });

  it("sends the user and password of a URL as a header, and leaves them out of errors", async () => {
    const { host } = new URL(nodes[0]!.url);
    expect(await newClient([`http://us%40er:p%3Ass@${host}/key-in-the-path`]).getSlot()).toBe(7);
    expect(nodes[0]!.calls[0]!.authorization).toBe(
      `Basic ${Buffer.from("us@er:p:ss").toString("base64")}`,
    );
    nodes[0]!.faults.add({
      when: isCall,
      then: rpcError({ code: 1, message: "p:ss", data: "key-in-the-path" }),
    });
    const error: unknown = await newClient([`http://us%40er:p%3Ass@${host}/key-in-the-path`])
      .getSlot()
      .catch((reason: unknown) => reason);
    expect(JSON.stringify({ ...(error as object), message: (error as Error).message })).not.toMatch(
      /p:ss|key-in/,
    );
  });

  const account = { lamports: 1, data: ["", "base64"] };
  it.each([
    ["negative lamports", rpcAccounts(4, { ...account, lamports: -1 })],
    ["a fraction of a lamport", rpcAccounts(4, { ...account, lamports: 0.5 })],
    ["one account instead of three", rpcResult({ context: { slot: 4 }, value: [account] })],
  ])("rejects %s as unreadable", async (_name, then) => {
    for (const node of nodes) node.faults.add({ when: isCall, then });
    await expect(client.getAccounts(["x"])).rejects.toThrow("unreadable");
  });

  it("does not use lamports that have lost digits, and blames no endpoint for them", async () => {
    for (const node of nodes)
      node.faults.add({ when: isCall, then: rpcAccounts(4, { ...account, lamports: 2 ** 53 }) });
    await expect(client.getAccounts(["x"])).rejects.toMatchObject({ failure: "account" });
    expect(calls()).toEqual([1, 1]);
    await client.getAccounts(["x"]).catch(() => undefined);
    // The first one does not back off.
    expect(calls()).toEqual([2, 2]);
  });

  it.each<[string, unknown]>([
    ["a number instead of members", 1],
    ["no lamports", { data: ["", "base64"] }],
    ["lamports as a string", { ...account, lamports: "1" }],
    ["no data", { lamports: 1 }],
    ["data in another encoding", { ...account, data: ["", "base58"] }],
    ["data without an encoding", { ...account, data: [""] }],
    ["data with a third item", { ...account, data: ["", "base64", ""] }],
    ["data that is not text", { ...account, data: [1, "base64"] }],
    ["an owner that is not text", { ...account, owner: 1 }],
    ["a negative space", { ...account, space: -1 }],
    ["a fractional space", { ...account, space: 0.5 }],
    ["an executable that is not a boolean", { ...account, executable: 1 }],
  ])("rejects an account with %s as unreadable", async (_name, value) => {
    for (const node of nodes) node.faults.add({ when: isCall, then: rpcAccounts(4, value) });
    await expect(client.getAccounts(["x"])).rejects.toThrow("unreadable");
  });

  it("rejects a response without one status per signature", async () => {
    for (const node of nodes)
      node.faults.add({ when: isCall, then: rpcResult({ context: { slot: 1 }, value: [] }) });
    await expect(client.findLanded(["x"])).rejects.toThrow("unreadable");
  });
});

describe("transactions that have landed", () => {
  const status = (confirmationStatus: string) => ({ slot: 3, err: null, confirmationStatus });
  const statuses = (value: (object | null)[]) => rpcResult({ context: { slot: 7 }, value });
  const find = async (...signatures: string[]) => [...(await client.findLanded(signatures))];

  it("are also those that only the next endpoint reports as final", async () => {
    const answers = [
      [status("finalized"), null, status("confirmed"), null],
      [null, status("finalized"), null, null],
    ];
    nodes.forEach((node, i) => {
      node.faults.add({ when: isCall, then: statuses(answers[i]!) });
    });
    expect(await find("a", "b", "c", "d")).toEqual(["a", "b"]);
    expect(calls()).toEqual([1, 1]);
  });

  it("are the first endpoint's if all have, or the next one fails", async () => {
    nodes[0]!.faults.add({ when: isCall, then: statuses([status("finalized")]), times: 1 });
    expect([await find("a"), calls()]).toEqual([["a"], [1, 0]]);
    nodes[0]!.faults.add({ when: isCall, then: statuses([status("finalized"), null]) });
    nodes[1]!.faults.add({ when: isCall, then: "reset" });
    expect(await find("a", "b")).toEqual(["a"]);
  });
});

import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RpcError } from "../../../src/chain/rpc/rpc-error.ts";
import { createRpc } from "../../../src/chain/rpc/rpc-client.ts";
import { createLogger } from "../../../src/observability/log.ts";
import { createCallUpstream } from "../../../src/upstream/http.ts";
import { createLoopbackServer, type LoopbackServer } from "../../../src/sandbox/loopback-server.ts";
import { CLOCK_SYSVAR } from "../../../src/chain/slots/clock.ts";
import { rpcAccounts, rpcError, rpcResult } from "../../support/rpc-answers.ts";

/** How many turns calls have asked for. */
let turns = 0;
function countTurn(): undefined {
  turns++;
}
type Node = LoopbackServer<{ authorization: string | undefined; params: unknown[] }>;
let nodes: Node[] = [];

const isGenesisHash = (body: string) => body.includes("getGenesisHash");
const isStateRead = (body: string) => body.includes(`[["${CLOCK_SYSVAR}"]`);
/** Any call except the checks of the cluster and the state, which are not recorded. */
const isCall = () => true;

beforeEach(async () => {
  const startNode = () =>
    createLoopbackServer({
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
      describe: ({ headers, body }) =>
        isGenesisHash(body) || isStateRead(body)
          ? undefined
          : { authorization: headers.authorization, params: JSON.parse(body).params },
    });
  nodes = await Promise.all([startNode(), startNode()]);
});
afterEach(() => Promise.all(nodes.map((node) => node.close())));

/**
 * An endpoint counts as slow after a fifth of the timeout, so the default is long enough for any
 * machine.
 */
const newClient = (urls: string[], rpcTimeoutMs = 60_000) => {
  const client = createRpc({
    chainCallPlan: { turn: countTurn, count: () => undefined },
    urls: urls.map((url) => new URL(url)),
    rpcTimeoutMs,
    callUpstream: createCallUpstream(new Registry()),
    log: createLogger("silent"),
  });
  client.takeSlot(7);
  return client;
};
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

/** Stands still, so that no node is asked for its slot again. */
let skippedMs = 0;
let client: ReturnType<typeof newClient>;
beforeEach(async () => {
  skippedMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => skippedMs);
  vi.spyOn(Date, "now").mockImplementation(() => skippedMs);
  client = await startClient();
});
afterEach(() => {
  vi.restoreAllMocks();
});
/** Skips this time. */
const later = (ms: number) => {
  skippedMs += ms;
};

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

  it("waits for a preferred endpoint that has not seen the slot yet, and then goes to the next one", async () => {
    const behind = rpcError({ code: -32016, message: "behind", data: { contextSlot: 1 } });
    nodes[0]!.faults.add({ when: isCall, then: behind, times: 3 });
    expect([await client.getSlot(), calls()]).toEqual([7, [4, 0]]);
    nodes[0]!.faults.add({ when: isCall, then: behind });
    expect([await client.getSlot(), calls()[1]]).toEqual([7, 1]);
  });

  it("does not take the newest slot from one of two endpoints, however long the other has failed", async () => {
    expect(await client.getNewestSlot()).toBe(7);
    nodes[0]!.faults.add({ when: isCall, then: "reset" });
    for (let i = 0; i < 6; i++) {
      await expect(client.getNewestSlot()).rejects.toThrow(RpcError);
      later(1_000);
    }
    const onlyClient = newClient([nodes[1]!.url]);
    await onlyClient.readClusters();
    expect(await onlyClient.getNewestSlot()).toBe(7);
  });

  it("keeps the code of an error that every endpoint returns", async () => {
    for (const { faults } of nodes)
      faults.add({
        when: isCall,
        then: rpcError({ code: -32015, message: "Invalid params", data: { why: "x" } }),
      });
    const error: unknown = await client.getSlot().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RpcError);
    expect(error).toMatchObject({ failure: "error", code: -32015, method: "getSlot" });
    expect(calls()).toEqual([2, 2]);
  });

  it("tells a cursor that no endpoint knows from the last page, and no endpoint backs off", async () => {
    for (const { faults } of nodes) {
      faults.add({ when: ({ params }) => params[0] === "unknown", then: rpcResult(null) });
      faults.add({ when: isCall, then: rpcError({ code: -32020 }) });
    }
    const page = client.listTransactions("address", { before: "unknown", limit: 1, minSlot: 0 });
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
    await expect(client.getAccounts([["x"]])).rejects.toThrow("unreadable");
  });

  it("does not use lamports that have lost digits, and blames no endpoint for them", async () => {
    for (const node of nodes)
      node.faults.add({ when: isCall, then: rpcAccounts(4, { ...account, lamports: 2 ** 53 }) });
    await expect(client.getAccounts([["x"]])).rejects.toMatchObject({ failure: "account" });
    expect(calls()).toEqual([1, 1]);
    await client.getAccounts([["x"]]).catch(() => undefined);
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
    await expect(client.getAccounts([["x"]])).rejects.toThrow("unreadable");
  });

  it("cuts the data when a node returns all of it instead of the requested part", async () => {
    const whole = { ...account, data: [Buffer.alloc(165, 7).toString("base64"), "base64"] };
    for (const node of nodes) node.faults.add({ when: isCall, then: rpcAccounts(4, whole) });
    const data: (Buffer | undefined)[] = [];
    await client.readAccounts({
      groups: [["x"]],
      bytes: 72,
      take(_, { accounts }) {
        data.push(...accounts.map((each) => each?.data));
        return "taken";
      },
    });
    expect(data).toEqual([Buffer.alloc(72, 7)]);
  });

  it("ignores the slot of a status when it is ahead of the node", async () => {
    const status = { slot: 2 ** 50, err: null, confirmationStatus: "finalized" };
    for (const node of nodes) {
      node.faults.add({
        when: isCall,
        times: 1,
        then: rpcResult({ context: { slot: 4 }, value: [status] }),
      });
    }
    const statuses = await client.getSignatureStatuses(["x"], { searchTransactionHistory: true });
    expect(statuses).toEqual([{ err: null, isFinal: true, slot: 0 }]);
  });

  it("rejects a response without one status per signature", async () => {
    for (const node of nodes)
      node.faults.add({ when: isCall, then: rpcResult({ context: { slot: 1 }, value: [] }) });
    await expect(
      client.getSignatureStatuses(["x"], { searchTransactionHistory: true }),
    ).rejects.toThrow("unreadable");
  });
});

describe("the statuses of signatures", () => {
  const status = (confirmationStatus: string) => ({ slot: 3, err: null, confirmationStatus });
  const statuses = (value: (object | null)[]) => rpcResult({ context: { slot: 4 }, value });
  const read = (signatures: string[]) =>
    client.getSignatureStatuses(signatures, { searchTransactionHistory: false });

  it("are read at the next endpoint only where the first one does not report them as final", async () => {
    const asked: unknown[] = [];
    const answers = [
      [status("finalized"), null, status("confirmed"), null],
      [status("finalized"), null, null],
    ];
    nodes.forEach((node, i) => {
      node.faults.add({ when: isCall, then: statuses(answers[i]!) });
    });
    const final = { err: null, isFinal: true, slot: 3 };
    expect(await read(["a", "b", "c", "d"])).toEqual([
      final,
      final,
      { err: null, isFinal: false, slot: 3 },
      undefined,
    ]);
    for (const { calls } of nodes) asked.push(calls[0]!.params[0]);
    expect(asked).toEqual([
      ["a", "b", "c", "d"],
      ["b", "c", "d"],
    ]);
  });

  it("are those of the first endpoint when the next one fails", async () => {
    nodes[0]!.faults.add({ when: isCall, then: statuses([status("processed"), null]) });
    nodes[1]!.faults.add({ when: isCall, then: "reset" });
    expect(await read(["a", "b"])).toEqual([{ err: null, isFinal: false, slot: 3 }, undefined]);
    expect(calls()).toEqual([1, 1]);
  });
});

describe("a provider's limit of accounts per call", () => {
  /** Each call also reads two sysvars. */
  const groups = Array.from({ length: 8 }, (_, i) => [`${i}a`, `${i}b`]);
  const account = { lamports: 1, data: ["", "base64"] };
  const sizes = () => nodes[0]!.calls.map(({ params }) => (params[0] as string[]).length);
  /** Answers calls for up to `limit` accounts, and refuses others. */
  const startProvider = (limit: number) => {
    const isRefused = ({ params }: { params: unknown[] }) => (params[0] as string[]).length > limit;
    nodes[0]!.faults.add({ when: isRefused, then: rpcError({ code: -32602, message: "no" }) });
    nodes[0]!.faults.add({ when: isCall, then: rpcAccounts(1, account) });
    return newClient([nodes[0]!.url]);
  };

  it("is learned by halving, remembered, and forgotten after an hour", async () => {
    const client = startProvider(7);
    expect(await client.getAccounts(groups)).toHaveLength(8);
    expect(sizes()).toEqual([18, 10, 6, 6, 6, 6]);
    nodes[0]!.calls.length = 0;
    await client.getAccounts(groups);
    expect(sizes()).toEqual([6, 6, 6, 6]);

    later(3_600_000);
    nodes[0]!.calls.length = 0;
    await client.getAccounts(groups);
    expect(sizes()).toEqual([18, 10, 6, 6, 6, 6]);
  });

  it("is not learned when a single account is refused too", async () => {
    const client = startProvider(0);
    await expect(client.getAccounts(groups)).rejects.toMatchObject({ code: -32602 });
    // A call at a time, and all of it once more after a wait.
    expect(sizes().length).toBeLessThan(30);
    nodes[0]!.faults.clear();
    nodes[0]!.calls.length = 0;
    await client.getAccounts(groups).catch(() => undefined);
    expect(sizes()[0]).toBe(18);
  });

  it("splits a group only when the group is larger", async () => {
    const client = startProvider(2);
    expect(await client.getAccounts(groups.slice(0, 2))).toEqual(
      Array(2).fill(Array(2).fill(expect.objectContaining({ lamports: 1n }))),
    );
    expect(sizes().slice(-4)).toEqual([2, 2, 2, 2]);
  });
});

import { withRpcFaults } from "../support/faults.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  createLoopbackServer,
  type LoopbackAnswer,
  type LoopbackRequest,
} from "../../src/sandbox/loopback-server.ts";
import { answerJsonRpc, type Methods } from "../../src/sandbox/rpc/json-rpc.ts";
import { createMethods } from "../../src/sandbox/rpc/methods.ts";
import { createSandboxCollector, type ChainRpc } from "../support/collector-on-sandbox.ts";
import { rpcError, rpcResult } from "../support/rpc-answers.ts";
import { isMethod, startTestSandbox, type TestSandbox } from "../support/sandbox.ts";

/** The methods that a collect with two endpoints calls. */
const METHODS = [
  "getGenesisHash",
  "getMultipleAccounts",
  "simulateTransaction",
  "getRecentPrioritizationFees",
  "getEpochInfo",
  "getLatestBlockhash",
  "sendTransaction",
  "getSignatureStatuses",
  "getTransaction",
];
/** The contract's, and the default deadline of a call. */
const DEADLINES = { COLLECT_TIMEOUT_MS: "50000", RPC_TIMEOUT_MS: "5000" };
const FEES = 1_234_567_890n;

let sandbox: TestSandbox;
let truth: Methods;

type Then = NonNullable<Parameters<ChainRpc["faults"]["add"]>[0]["then"]>;
/** Changes each number of the true result. */
const withNumbers = (change: (number: number) => unknown): Then => {
  const changed = (value: any): unknown => {
    if (typeof value === "number") return change(value);
    if (Array.isArray(value)) return value.map(changed);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, changed(each)]));
  };
  return (request) => rpcResult(changed(tellTruth(request).result))(request);
};
const tellTruth = ({ body }: LoopbackRequest) => JSON.parse(answerJsonRpc(body, truth).body);
const http = (status: number, body = ""): LoopbackAnswer => ({ status, body });

const FAULTS: readonly (readonly [name: string, then: Then, after?: boolean])[] = [
  ...[-32700, -32600, -32601, -32602, -32603, -32002, -32004, -32005, -32015, -32016, 429].map(
    (code) => [`the error ${code}`, rpcError({ code })] as const,
  ),
  ["HTTP 401", http(401, "{}")],
  ["HTTP 429", http(429)],
  ["HTTP 503", http(503)],
  ["an empty body", http(200)],
  ["HTML", http(200, "<html></html>")],
  ["a truncated answer", "cut"],
  ["a closed connection", "reset"],
  ["a lost answer", "reset", true],
  ["silence", "hang"],
  [
    "the answer to another call",
    (request) => http(200, JSON.stringify({ ...tellTruth(request), id: -1 })),
  ],
  ["null", rpcResult(null)],
  ["an empty list", rpcResult([])],
  ["an empty object", rpcResult({})],
  ["numbers as strings", withNumbers(String)],
  ["negative numbers", withNumbers((number) => -number)],
  ["huge numbers", withNumbers((number) => number + 2 ** 60)],
];

/** One endpoint for each fault. */
let endpoints: ChainRpc[];
beforeAll(async () => {
  sandbox = await startTestSandbox();
  truth = createMethods(sandbox.chain);
  const handle = ({ body }: LoopbackRequest) => answerJsonRpc(body, truth);
  const servers = await Promise.all(FAULTS.map(() => createLoopbackServer({ port: 0, handle })));
  endpoints = servers.map(withRpcFaults);
});
afterAll(async () => {
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
  await sandbox.close();
});

describe.each(METHODS)("beside a healthy endpoint, the preferred one answers %s", (method) => {
  it.concurrent.each(FAULTS.map(([name, then, after], i) => [name, { then, after, i }] as const))(
    "with %s: the collect ends in one transaction with the right amount",
    async (_, { then, after, i }) => {
      const { chain, secondRpc } = sandbox;
      const handle = `artist${String(i + 1).padStart(3, "0")}`;
      const { creatorVault } = sandbox.account(handle);
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + FEES);
      const before = sandbox.landedCollectsOf(handle).length;
      const endpoint = endpoints[i]!;
      const lift = endpoint.faults.add({ when: isMethod(method), then, after: after ?? false });
      // Statuses are read only of what is not returned.
      if (method === "getSignatureStatuses")
        endpoint.faults.add({ when: isMethod("getTransaction"), times: 1, then: rpcResult(null) });
      const collector = createSandboxCollector(sandbox, {
        rpcs: [endpoint, secondRpc],
        env: DEADLINES,
      });
      const outcome = await collector.collect(handle);
      lift();
      expect(outcome).toMatchObject({ kind: "collected", collected: FEES });
      expect(sandbox.landedCollectsOf(handle)).toHaveLength(before + 1);
      expect(endpoint.calls.some(isMethod(method))).toBe(true);
    },
  );
});

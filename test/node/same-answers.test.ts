/**
 * Compares the sandbox with a real node, whose answers are recorded: `node scripts/record-node.ts`.
 * The recorded node is Surfpool, which differs from validators in places; what Agave does is in its
 * sources, rpc/src/rpc.rs.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RPC_RESULTS, type RpcMethod } from "../../src/chain/rpc/rpc-results.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { askAll, type Answer } from "./questions.ts";
import recording from "./recorded-answers.json" with { type: "json" };

const recorded: Record<string, Answer> = recording.answers;

/** A place where the sandbox differs on purpose. */
interface Difference {
  /** The start of the names of the requests. */
  readonly request: string;
  readonly member: string;
  /** What the sandbox has there. */
  readonly sandbox: unknown;
  readonly reason: string;
}

/** Members that the sandbox leaves out everywhere, because nothing reads them. */
const LEFT_OUT = [
  ...["epoch", "slotIndex", "slotsInEpoch", "transactionCount"],
  ...["status", "stackHeight", "rewards", "returnData", "loadedAddresses"],
  ...["loadedAccountsDataSize", "preTokenBalances", "postTokenBalances"],
  ...["apiVersion", "logMessages", "computeUnitsConsumed"],
];

const FINAL_STATUS = {
  confirmationStatus: "finalized",
  confirmations: null,
  err: null,
  slot: "number",
};

const DIFFERENCES: readonly Difference[] = [
  // The sandbox leaves these out.
  ...["fee", "postBalances", "innerInstructions", "replacementBlockhash"].map((member) => ({
    request: "simulateTransaction: ",
    member: `value.${member}`,
    sandbox: undefined,
    reason: "nothing reads it",
  })),
  ...["simulateTransaction", "sendTransaction", "getTransaction"].map((method) => ({
    request: `${method}: a lookup table`,
    member: "",
    sandbox: undefined,
    reason: "the sandbox has no transactions with lookup tables, as this service sends none",
  })),

  // The recorded node follows the consensus before Alpenglow, and was asked before finality.
  {
    request: "getSignatureStatuses: landed and unknown",
    member: "value",
    sandbox: [FINAL_STATUS, null],
    reason: "with Alpenglow, the block is final by then",
  },

  // Here the sandbox answers as Agave, and Surfpool does not.
  ...[
    "getMultipleAccounts: 101 accounts",
    "getSignatureStatuses: 257 signatures",
    "simulateTransaction: too many accounts",
  ].map((request) => ({
    request,
    member: "",
    sandbox: "error -32602",
    reason: "Surfpool has no limit",
  })),
  {
    request: "getSignaturesForAddress: an unknown cursor",
    member: "",
    sandbox: "error -32020",
    reason: "Surfpool answers as before Agave 4.0",
  },
  {
    request: "getRecentPrioritizationFees: 128 accounts",
    member: "",
    sandbox: [{ prioritizationFee: "number", slot: "number" }],
    reason: "Surfpool lists only blocks with transactions of these accounts",
  },
  ...["a landed transaction again", "a bad signature"].map((request) => ({
    request: `sendTransaction: ${request}`,
    member: "",
    sandbox: "string",
    reason: "Surfpool executes before it answers; without preflight a validator only forwards",
  })),
  ...["a failing instruction", "a receiver below rent", "a missing fee payer"].map((request) => ({
    request: `simulateTransaction: ${request}`,
    member: "value.accounts",
    sandbox: [null],
    reason: "Surfpool has no list after an error; Agave's has a null for each address",
  })),
  {
    request: "simulateTransaction: ",
    member: "value.preBalances",
    sandbox: ["number"],
    reason: "Surfpool has no balances; Agave has them since 3.0",
  },
  {
    request: "simulateTransaction: accounts of others",
    member: "value.accounts",
    sandbox: [
      {
        data: ["string"],
        executable: false,
        lamports: "number",
        owner: "string",
        rentEpoch: "number",
        space: "number",
      },
      null,
    ],
    reason: "Surfpool returns only the transaction's own accounts",
  },
];

/** Members with these names are compared by value, all others by type. */
const BY_VALUE = ["err", "confirmationStatus", "executable"];

/** Equal neighbours in a list count once. */
function shapeOf(value: unknown, name = ""): unknown {
  if (value === null || typeof value === "boolean" || BY_VALUE.includes(name)) return value;
  if (Array.isArray(value)) {
    const shapes = value.map((each) => shapeOf(each));
    return shapes.filter((shape, i) => i === 0 || !isSame(shape, shapes[i - 1]));
  }
  if (typeof value !== "object") return typeof value;
  const names = Object.keys(value)
    .filter((each) => !LEFT_OUT.includes(each))
    .sort();
  return Object.fromEntries(names.map((name) => [name, shapeOf((value as any)[name], name)]));
}

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Errors are compared by code, and by `data` where it is an object: Surfpool's other data are
 * messages.
 */
function shapeOfAnswer(answer: Answer | undefined): unknown {
  if (!answer?.error) return answer && shapeOf(answer.result);
  const { code, data } = answer.error;
  return isObject(data) ? { code, data: shapeOf(data) } : `error ${code}`;
}

function* compare(
  node: unknown,
  sandbox: unknown,
  path: string[] = [],
): Generator<{ member: string; node: unknown; sandbox: unknown }> {
  if (isObject(node) && isObject(sandbox))
    for (const name of new Set([...Object.keys(node), ...Object.keys(sandbox)]))
      yield* compare(node[name], sandbox[name], [...path, name]);
  else if (!isSame(node, sandbox)) yield { member: path.join("."), node, sandbox };
}

let sandbox: Sandbox;
let answers: Record<string, Answer>;

beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
  const { chain, rpc } = sandbox;
  answers = await askAll({
    url: rpc.url,
    hasLookupTables: false,
    fund: (address, lamports) => {
      chain.setBalance(address, BigInt(lamports));
    },
    finalize: () => {
      chain.advanceSlots(1);
    },
    pass: (blockHeight) => {
      chain.advanceSlots(blockHeight + 1 - chain.blockHeight("finalized"));
    },
  });
});
afterAll(() => sandbox.close());

it("the sandbox answers as a node, but for the listed differences", () => {
  const unused = new Set(DIFFERENCES);
  const unexpected = Object.entries(recorded).flatMap(([request, answer]) =>
    [...compare(shapeOfAnswer(answer), shapeOfAnswer(answers[request]))].flatMap((found) => {
      const listed = DIFFERENCES.find(
        (each) =>
          request.startsWith(each.request) &&
          each.member === found.member &&
          isSame(each.sandbox, found.sandbox),
      );
      if (listed) unused.delete(listed);
      return listed ? [] : [{ request, ...found }];
    }),
  );
  expect(unexpected).toEqual([]);
  expect([...unused]).toEqual([]);
});

describe.each([
  ["a node", () => recorded],
  ["the sandbox", () => answers],
])("the results of %s", (_, answersOf) => {
  it("are readable to the service", () => {
    const unreadable = Object.entries(answersOf()).filter(
      ([, { method, error, result }]) =>
        !error && !RPC_RESULTS[method as RpcMethod].safeParse(result).success,
    );
    expect(unreadable).toEqual([]);
  });
});

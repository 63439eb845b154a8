import { describe, expect, it } from "vitest";
import {
  CollectError,
  mayHaveMoved,
  type CollectFailure,
} from "../../../src/chain/errors/collect-error.ts";
import { NoRoomError } from "../../../src/chain/errors/no-room-error.ts";
import { RpcError } from "../../../src/chain/rpc/rpc-error.ts";
import {
  toCollectContractError,
  toLookupContractError,
} from "../../../src/chain/errors/to-contract-error.ts";
import { ContractError } from "../../../src/contract/contract-error.ts";
import { rowOf } from "../../../src/contract/error-codes.ts";

const COLLECT_FAILED = rowOf("COLLECT_FAILED").message;
const INSUFFICIENT_FUNDS = rowOf("INSUFFICIENT_FUNDS").message;

interface Expected {
  readonly code?: "INSUFFICIENT_FUNDS";
  readonly message: string;
  /** Part of the operator hint, for failures that are logged with one. */
  readonly hint?: string;
}

/** By kind: a new kind does not compile without a case. */
const CASES: {
  [Kind in CollectFailure["kind"]]: [
    Omit<Extract<CollectFailure, { kind: Kind }>, "kind">,
    Expected,
  ];
} = {
  "not-started": [
    {},
    { message: "The request timed out before this collect started. Request it again." },
  ],
  "lease-not-acquired": [
    {},
    { message: COLLECT_FAILED, hint: "another replica did not sign in time" },
  ],
  "stored-transaction-unreadable": [{}, { message: COLLECT_FAILED, hint: "cannot be read" }],
  "simulation-failed": [
    { err: { InstructionError: [2, { Custom: 6_000 }] }, programError: "Program p failed: no" },
    { message: COLLECT_FAILED, hint: "install a new version" },
  ],
  "backing-off": [
    { leftMs: 900 },
    {
      message:
        "The last transaction with these fees failed on the chain, moved nothing, or is not known to have landed, so no new one was sent. Try again in 1 second.",
    },
  ],
  "budget-spent": [
    { scope: "SERVICE", retryAfterSeconds: 312, isSmall: false },
    {
      message: "The service has used its fee budget for now. Try again in 312 seconds.",
    },
  ],
  "others-first": [
    {},
    {
      message:
        "Others collected first, each time that this collect tried. Fees may still wait: try again.",
      hint: "check the balances",
    },
  ],
  "timed-out": [
    {},
    {
      message:
        "The chain did not answer in time. No new transaction was sent. Try again in a minute.",
      hint: "COLLECT_TIMEOUT_MS",
    },
  ],
  "fee-payer-short": [
    { detail: "why" },
    { code: "INSUFFICIENT_FUNDS", message: INSUFFICIENT_FUNDS, hint: "send it some" },
  ],
  "still-running": [
    { signature: "sig" },
    {
      message:
        "The collect is still running; it is not known yet whether transaction sig lands. Look it up by its signature, or collect again to wait for it.",
      hint: "a collect takes longer than COLLECT_TIMEOUT_MS",
    },
  ],
  unknown: [
    { signature: "sig" },
    {
      message:
        "It is not known whether transaction sig landed. Look it up by its signature. Collecting again never moves the same fees twice.",
      hint: "says what became of a collect's transaction",
    },
  ],
  expired: [
    { signature: "sig" },
    {
      message: "Transaction sig did not land and never can. Nothing was moved. Try again.",
      hint: "did not land: if this repeats",
    },
  ],
  "failed-on-chain": [
    { signature: "sig", err: "ProgramFailedToComplete" },
    { message: COLLECT_FAILED, hint: "failed on the chain" },
  ],
  "nothing-received": [
    { signature: "sig" },
    {
      message:
        "Transaction sig landed, but moved nothing: the account's address, or another account that shares the coin's fees, was emptied just before, and could not receive its part. The fees still wait. Try again later.",
      hint: "backs off",
    },
  ],
  "landed-unreadable": [
    { signature: "sig" },
    {
      message:
        "Transaction sig landed, but its amounts are not certain at the moment. Look it up by its signature.",
      hint: "no endpoint in SOLANA_RPC_URL returns",
    },
  ],
};

/** What each kind moved, and in how many seconds a retry helps, if one does. */
const MOVED: Record<CollectFailure["kind"], ["yes" | "no" | "unknown", number | undefined]> = {
  "not-started": ["no", 1],
  "lease-not-acquired": ["no", 60],
  "stored-transaction-unreadable": ["unknown", 60],
  "simulation-failed": ["no", 60],
  "backing-off": ["no", 1],
  "budget-spent": ["no", 312],
  "others-first": ["no", 1],
  "timed-out": ["no", 60],
  "fee-payer-short": ["no", undefined],
  "still-running": ["unknown", 1],
  unknown: ["unknown", 60],
  expired: ["no", 1],
  "failed-on-chain": ["no", 60],
  "nothing-received": ["no", 60],
  "landed-unreadable": ["yes", 60],
};

describe("a CollectError", () => {
  it.each(Object.entries(CASES))(
    "of kind %s has its own code, message and result",
    (kind, [rest, expected]) => {
      const error = new CollectError({ kind, ...rest } as CollectFailure);
      const { code = "COLLECT_FAILED", message, hint } = expected;
      const converted = toCollectContractError(error);
      expect(converted).toBeInstanceOf(ContractError);
      // For the log: the caller's message, unless that is the code's default.
      expect(error.message === message).toBe(
        ![COLLECT_FAILED, INSUFFICIENT_FUNDS].includes(message),
      );
      expect(error.message).not.toBe("");
      expect([error.code, converted.code, converted.status, converted.message]).toEqual([
        code,
        code,
        500,
        message,
      ]);
      expect(converted.cause).toBe(hint === undefined ? undefined : error);
      if (hint === undefined) expect(converted.operatorHint).toBeUndefined();
      else expect(converted.operatorHint).toContain(hint);
      const [moved, seconds] = MOVED[error.failure.kind];
      expect(converted.retryAfterSeconds).toBe(seconds);
      expect(converted.extensions).toEqual({
        moved,
        ...("signature" in rest && { txSignature: "sig" }),
        ...(kind === "budget-spent" && { scope: "SERVICE" }),
      });
      expect(mayHaveMoved(error)).toBe("signature" in rest && moved !== "no");
    },
  );

  it.each([
    ["CALLER", false, "You have used your share of the service's fee budget"],
    ["CALLER", true, "You have used your share of the service's fee budget for small collects"],
    ["SERVICE", true, "The service has used its fee budget for small collects"],
  ] as const)(
    "of kind budget-spent says whose budget is used: %s, small: %s",
    (scope, isSmall, message) => {
      const error = new CollectError({
        kind: "budget-spent",
        scope,
        isSmall,
        retryAfterSeconds: 312,
      });
      expect(toCollectContractError(error)).toMatchObject({
        message: `${message} for now. Try again in 312 seconds.`,
        retryAfterSeconds: 312,
        extensions: { scope },
      });
    },
  );

  it.each([
    [false, "The service's fee budget does not allow this collect."],
    [true, "The service's fee budget for small collects does not allow this collect."],
  ])(
    "of kind budget-spent says that the budget is too small, without a time: small: %s",
    (isSmall, message) => {
      const error = new CollectError({ kind: "budget-spent", scope: "SERVICE", isSmall });
      const converted = toCollectContractError(error);
      expect(converted).toMatchObject({ message, extensions: { scope: "SERVICE" } });
      expect(converted.retryAfterSeconds).toBeUndefined();
    },
  );

  it("of kind still-running says so when no transaction is in flight", () => {
    const error = new CollectError({ kind: "still-running", signature: undefined });
    const { message, extensions } = toCollectContractError(error);
    expect(extensions).toEqual({ moved: "unknown" });
    expect(message).toBe(
      "The collect is still running; it has no transaction in flight yet. Collect again to wait for its result.",
    );
  });

  it("includes the program's error and the chain's in its own message", () => {
    const programError = "Program p failed: custom program error: 0x1770";
    const err = { InstructionError: [2, { Custom: 6_000 }] };
    expect(new CollectError({ kind: "simulation-failed", err, programError }).message).toBe(
      'the simulation failed: Program p failed: custom program error: 0x1770: {"InstructionError":[2,{"Custom":6000}]}',
    );
  });
});

describe("an RpcError", () => {
  it.each([
    ["LOOKUP_FAILED", toLookupContractError],
    ["COLLECT_FAILED", toCollectContractError],
  ] as const)("becomes %s with a hint", (code, convert) => {
    const error = new RpcError("unreachable", "getSlot", "host");
    expect(convert(error)).toMatchObject({
      code,
      message: rowOf(code).message,
      cause: error,
      operatorHint: expect.stringContaining("SOLANA_RPC_URL"),
      ...(code === "COLLECT_FAILED" && { retryAfterSeconds: 60, extensions: { moved: "no" } }),
    });
  });
});

describe("any other error", () => {
  const bug = new TypeError("not a function");

  it("becomes COLLECT_FAILED without a hint, because it is a bug", () => {
    expect(toCollectContractError(bug)).toMatchObject({
      code: "COLLECT_FAILED",
      message: COLLECT_FAILED,
      cause: bug,
      operatorHint: undefined,
      extensions: { moved: "unknown" },
    });
  });

  it("of a lookup is returned unchanged, so that an abort by the caller stays an abort", () => {
    const abort = new DOMException("left", "AbortError");
    expect(toLookupContractError(abort)).toBe(abort);
    expect(toLookupContractError(bug)).toBe(bug);
  });

  it("that is a ContractError says that nothing moved", () => {
    const error = new ContractError("INVALID_SOCIAL_ID", { status: 413, message: "why" });
    const { code, status, message, extensions } = toCollectContractError(error);
    expect([code, status, message, extensions]).toEqual([
      "INVALID_SOCIAL_ID",
      413,
      "why",
      { moved: "no" },
    ]);
  });
});

it("names the same seconds in text and Retry-After for calls that the plan has no room for", () => {
  const caller = new NoRoomError({ scope: "CALLER", retryAfterSeconds: 7 });
  const service = new NoRoomError({ scope: "SERVICE", retryAfterSeconds: 6 });
  expect(toLookupContractError(caller)).toMatchObject({
    code: "SERVICE_BUSY",
    message:
      "You have used your share of the service's calls to the chain for now. Try again in 7 seconds.",
    retryAfterSeconds: 7,
    extensions: { scope: "CALLER" },
  });
  expect(toCollectContractError(service)).toMatchObject({
    code: "COLLECT_FAILED",
    message: "The service has used its calls to the chain for now. Try again in 6 seconds.",
    retryAfterSeconds: 6,
    extensions: { moved: "no", scope: "SERVICE" },
  });
});

import type { Shortage } from "../../fairness/budget.ts";
import { isTimeout } from "../../upstream/http.ts";
import type { RpcMethod } from "./rpc-results.ts";

/**
 * Why a call failed: the endpoint did not respond (`unreachable`, `timeout`), the HTTP status is
 * not 2xx (`status`), the response is not valid JSON-RPC or cannot be true (`unreadable`), its slot
 * is too old or not credible (`slot`), the node returned an error (`error`), the endpoint is on
 * another cluster than the others (`cluster`), some accounts of an otherwise good response cannot
 * be used (`account`), or the node refuses the call's transaction, which another node may take
 * (`refused`), or the plan of calls has no room for it (`no-room`).
 */
export type RpcFailure =
  | "unreachable"
  | "timeout"
  | "status"
  | "unreadable"
  | "slot"
  | "error"
  | "cluster"
  | "account"
  | "refused"
  | "no-room";

const METHOD_NOT_FOUND = -32601;
const UNSUPPORTED_VERSION = -32015;
const INVALID_PARAMS = -32602;
/**
 * The codes with which a node refuses a call's transaction: it cannot decode the transaction, its
 * version is not active, or the node cannot return it. Another node may take the same call, so no
 * JSON-RPC error is final. Source: Agave's rpc.rs.
 */
const REFUSAL_CODES: Partial<Record<RpcMethod, readonly number[]>> = {
  simulateTransaction: [INVALID_PARAMS, UNSUPPORTED_VERSION],
  sendTransaction: [INVALID_PARAMS, UNSUPPORTED_VERSION],
  getTransaction: [UNSUPPORTED_VERSION],
};

/**
 * The codes with which providers refuse a call that is too large. Each code also has other
 * meanings.
 */
const SIZE_ERROR_CODES = [-32600, -32602, -32003];
const PAYLOAD_TOO_LARGE = 413;

/** The node is behind the cluster. */
const NODE_UNHEALTHY = -32005;
const MIN_CONTEXT_SLOT_NOT_REACHED = -32016;

/**
 * A failed call. Its message names only the endpoint's host, because the rest of the URL may
 * contain a key.
 */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly failure: RpcFailure;
  readonly method: string;
  /** The HTTP status (`status`) or the JSON-RPC error code (`error`, `refused`). */
  readonly code: number | undefined;
  /** The node's slot, if the call failed because of it. */
  readonly slot: number | undefined;

  constructor(
    failure: RpcFailure,
    method: string,
    host: string,
    details: { code?: number; slot?: number | undefined; cause?: unknown } = {},
  ) {
    super(
      `${method} at ${host}: ${failure}${details.code === undefined ? "" : ` ${details.code}`}`,
      {
        cause: details.cause,
      },
    );
    this.failure = failure;
    this.method = method;
    this.code = details.code;
    this.slot = details.slot;
  }
}

/** A call that was not made: its owner, or the service, has used its calls. */
export class NoRoomError extends RpcError {
  readonly shortage: Required<Shortage>;

  constructor(shortage: Required<Shortage>) {
    super("no-room", "a call", "no endpoint");
    this.shortage = shortage;
  }
}

const about =
  (is: (error: RpcError) => boolean) =>
  (error: unknown): boolean =>
    error instanceof RpcError && is(error);

/** Whether only the answer's slot is wrong: a later answer, or another endpoint's, may be right. */
export const isOfSlot = about(
  ({ failure, code }) =>
    failure === "slot" || (failure === "error" && code === MIN_CONTEXT_SLOT_NOT_REACHED),
);

/** Whether the node is only behind, and catches up within some slots. */
export const isBehind = about((error) => isOfSlot(error) || error.code === NODE_UNHEALTHY);

/** Whether the node refuses a transaction, which another node may take. */
export const isRefusal = about(({ failure }) => failure === "refused");

/** Whether the node does not serve the method. */
export const isUnsupported = about(
  ({ failure, code }) => failure === "error" && code === METHOD_NOT_FOUND,
);

export const isOfAccount = about(({ failure }) => failure === "account");

/** Whether a provider may have refused the call because it is too large. */
export const refusesSize = about(({ failure, code = 0 }) =>
  failure === "error" ? SIZE_ERROR_CODES.includes(code) : code === PAYLOAD_TOO_LARGE,
);

/** Whether a JSON-RPC error of `method` means that the node refuses the call's transaction. */
export function isRefusalCode(method: RpcMethod, code: number): boolean {
  return REFUSAL_CODES[method]?.includes(code) ?? false;
}

/** Returns the error of a call that failed with `cause`, which may be an abort reason. */
export function toRpcError(cause: unknown, method: string, host: string): RpcError {
  if (cause instanceof RpcError) return cause;
  return new RpcError(isTimeout(cause) ? "timeout" : "unreachable", method, host, { cause });
}

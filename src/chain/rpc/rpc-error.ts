import { isTimeout } from "../../upstream/http.ts";
import type { RpcMethod } from "./rpc-results.ts";

/**
 * Why a call failed: the endpoint did not respond (`unreachable`, `timeout`), the HTTP status is
 * not 2xx (`status`), the response is not valid JSON-RPC or cannot be true (`unreadable`), its slot
 * is too old (`slot`), the node returned an error (`error`), the endpoint is on
 * another cluster than the others (`cluster`), or the node refuses the call's transaction, which
 * another node may take (`refused`).
 */
export type RpcFailure =
  "unreachable" | "timeout" | "status" | "unreadable" | "slot" | "error" | "cluster" | "refused";

const METHOD_NOT_FOUND = -32601;
const NO_HISTORY = -32011;
const UNSUPPORTED_VERSION = -32015;
const INVALID_PARAMS = -32602;
/**
 * The codes with which a node refuses a call's transaction: it cannot decode the transaction, its
 * version is not active, or the node cannot return it. Another node may take the same call. Source:
 * Agave's rpc.rs.
 */
const REFUSAL_CODES: Partial<Record<RpcMethod, readonly number[]>> = {
  simulateTransaction: [INVALID_PARAMS, UNSUPPORTED_VERSION],
  sendTransaction: [INVALID_PARAMS, UNSUPPORTED_VERSION],
  getTransaction: [UNSUPPORTED_VERSION],
};

/** The node is behind the cluster, or behind `minContextSlot`. */
const BEHIND = [-32005, -32016];

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
  /** For how long the provider asks for no more calls; 0 if it does not say. */
  readonly retryAfterMs: number;
  /** What the provider says, for the operator: short, without secrets. */
  readonly words: string;

  constructor(
    failure: RpcFailure,
    method: string,
    host: string,
    details: Partial<Pick<RpcError, "code" | "slot" | "retryAfterMs" | "words" | "cause">> = {},
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
    this.retryAfterMs = details.retryAfterMs || 0;
    this.words = details.words ?? "";
  }
}

const about =
  (is: (error: RpcError) => boolean) =>
  (error: unknown): boolean =>
    error instanceof RpcError && is(error);

/**
 * Whether the node is only behind, and catches up within some slots. It can always tell its genesis
 * hash.
 */
export const isBehind = about(
  ({ failure, method, code = 0 }) =>
    failure === "slot" || (method !== "getGenesisHash" && BEHIND.includes(code)),
);

/** Whether the node refuses a transaction, which another node may take. */
export const isRefusal = about(({ failure }) => failure === "refused");

/** Whether the node does not serve the call: to ask it again has no use. */
export const isUnsupported = about(
  ({ failure, code }) =>
    failure === "refused" ||
    (failure === "error" && (code === METHOD_NOT_FOUND || code === NO_HISTORY)),
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

/**
 * Why a call failed: the endpoint did not respond (`unreachable`, `timeout`), the response is not valid
 * JSON-RPC (`status`, `unreadable`), or the node returned an error (`error`).
 */
export type RpcFailure = "unreachable" | "timeout" | "status" | "unreadable" | "error";

/**
 * JSON-RPC errors about the request itself, which every node would return: it cannot be parsed, its
 * transaction fails preflight, or has a version above the requested maximum. Providers use others, such as
 * -32600, -32602 and -32003, for limits of their own. Source: JSON-RPC 2.0, and Solana's custom error codes.
 */
const FINAL_ERROR_CODES = [-32700, -32002, -32015];

/** The node is behind the cluster, or behind the requested slot. */
const BEHIND_ERROR_CODES = [-32005, -32016];

/** A failed call. Its message names only the endpoint's host, because the rest of the URL may contain a key. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly failure: RpcFailure;
  readonly method: string;
  /** The HTTP status (`status`) or the JSON-RPC error code (`error`). */
  readonly code: number | undefined;

  constructor(
    failure: RpcFailure,
    method: string,
    host: string,
    details: { code?: number; cause?: unknown } = {},
  ) {
    super(`${method} at ${host}: ${failure}${details.code === undefined ? "" : ` ${details.code}`}`, {
      cause: details.cause,
    });
    this.failure = failure;
    this.method = method;
    this.code = details.code;
  }
}

/** Whether a retry of the call may succeed, at this endpoint or another. */
export function isRetryable(error: unknown): boolean {
  return error instanceof RpcError && !(error.failure === "error" && FINAL_ERROR_CODES.includes(error.code!));
}

/** Whether the node is only behind, and catches up within some slots. */
export function isBehind(error: unknown): boolean {
  return error instanceof RpcError && error.failure === "error" && BEHIND_ERROR_CODES.includes(error.code!);
}

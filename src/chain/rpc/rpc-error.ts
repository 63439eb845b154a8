/**
 * Why a call has no result: no endpoint answered (`unreachable`, `timeout`), the answer is not that of a
 * working JSON-RPC node (`status`, `unreadable`), or the node answered with an error (`error`).
 */
export type RpcFailure = "unreachable" | "timeout" | "status" | "unreadable" | "error";

/**
 * JSON-RPC errors about the request itself, which every node would give: it cannot be parsed, is invalid,
 * or has invalid parameters; its transaction fails preflight, has a wrong signature, or has a version that
 * was not asked for. Source: JSON-RPC 2.0, and Solana's custom JSON-RPC error codes.
 */
const FINAL_ERROR_CODES = [-32700, -32600, -32602, -32002, -32003, -32015];

/** The node is behind the cluster, or behind the requested slot. */
const BEHIND_ERROR_CODES = [-32005, -32016];

/** A failed call. Shows only the `host` of an endpoint, because the rest of the URL may hold a key. */
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

/** Whether another endpoint, or the same one a moment later, may answer the same call. */
export function isRetryable(error: unknown): boolean {
  return error instanceof RpcError && !(error.failure === "error" && FINAL_ERROR_CODES.includes(error.code!));
}

/** Whether the node only has to catch up, which takes some slots. */
export function isBehind(error: unknown): boolean {
  return error instanceof RpcError && error.failure === "error" && BEHIND_ERROR_CODES.includes(error.code!);
}

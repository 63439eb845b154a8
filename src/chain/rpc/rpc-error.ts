/**
 * Why a call got no result: nobody answered (`unreachable`, `timeout`), somebody answered that is no
 * working JSON-RPC node (`status`, `unreadable`), or the node answered with an error of its own (`error`).
 */
export type RpcFailure = "unreachable" | "timeout" | "status" | "unreadable" | "error";

/**
 * JSON-RPC errors that speak of the request itself, so that every node would give them: it cannot be
 * parsed, is invalid, has invalid parameters; its transaction fails in preflight, has a wrong signature, or
 * a version that was not asked for. Source: JSON-RPC 2.0, and the node's own list of custom errors.
 */
const FINAL_ERROR_CODES = [-32700, -32600, -32602, -32002, -32003, -32015];

/** The node is behind the others, or behind the slot that was asked for. */
const BEHIND_ERROR_CODES = [-32005, -32016];

/** What a failed call tells. `host` is all of the address that is ever shown: the rest may hold a key. */
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
    rest: { code?: number; cause?: unknown } = {},
  ) {
    super(`${method} at ${host}: ${failure}${rest.code === undefined ? "" : ` ${rest.code}`}`, {
      cause: rest.cause,
    });
    this.failure = failure;
    this.method = method;
    this.code = rest.code;
  }
}

/** Whether another endpoint, or the same one a moment later, may answer the same call. */
export function isPassing(error: unknown): boolean {
  return error instanceof RpcError && !(error.failure === "error" && FINAL_ERROR_CODES.includes(error.code!));
}

/** Whether the node has only to catch up, which takes it some slots. */
export function isBehind(error: unknown): boolean {
  return error instanceof RpcError && error.failure === "error" && BEHIND_ERROR_CODES.includes(error.code!);
}

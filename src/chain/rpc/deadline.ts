import { reasonOf } from "../../observability/thrown.ts";
import { memoize } from "../../store/memoize.ts";
import type { Attempt, Endpoint } from "./rpc-endpoint.ts";
import { toRpcError } from "./rpc-error.ts";

/** Calls `run` with a signal that aborts with a TimeoutError after `timeoutMs`. */
export async function withDeadline<T>(
  timeoutMs: number,
  run: (deadline: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController();
  // Not AbortSignal.timeout, which would keep the whole call in memory until the deadline.
  const timer = setTimeout(() => {
    deadline.abort(new DOMException(`no answer within ${timeoutMs} ms`, "TimeoutError"));
  }, timeoutMs);
  try {
    return await run(deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for `promise`, but rejects with the signal's reason as soon as the signal aborts. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      reject(reasonOf(signal));
    };
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    void promise.then(resolve, reject).then(() => {
      signal.removeEventListener("abort", abort);
    });
  });
}

/**
 * Shares one `read` of each endpoint between all callers within `maxAgeMs`. The read has its own
 * deadline of `rpcTimeoutMs`: a caller's signal ends only that caller's wait. Throws {@link
 * RpcError} for `method`.
 */
export function memoizeByEndpoint<T>(
  method: string,
  read: Attempt<T>,
  maxAgeMs: number,
  rpcTimeoutMs: number,
): Attempt<T> {
  const reads = new Map<Endpoint, () => Promise<T>>();
  return (endpoint, signal) => {
    const memoizedRead =
      reads.get(endpoint) ??
      memoize(() => withDeadline(rpcTimeoutMs, (deadline) => read(endpoint, deadline)), maxAgeMs);
    reads.set(endpoint, memoizedRead);
    return untilAborted(memoizedRead(), signal).catch((cause: unknown) => {
      throw toRpcError(cause, method, endpoint.host);
    });
  };
}

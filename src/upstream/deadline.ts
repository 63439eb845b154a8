import { reasonOf } from "../observability/thrown.ts";

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

import type { Attempt, Endpoint } from "./rpc-endpoint.ts";

/** Decides what the ends of attempts mean. */
export interface Verdict<T> {
  /** Takes a result. Returns whether it ends the call. */
  takeResult(endpoint: Endpoint, result: T): boolean;
  /** Takes an error. Returns whether it ends the call. `isFirst`: no other endpoint was asked. */
  takeError(endpoint: Endpoint, error: unknown, isFirst: boolean): boolean;
  /** Whether a candidate is worth the wait for its answer. */
  isWorthAsking(candidate: Endpoint): boolean;
  /** Whether the call can end without the answers of these slow endpoints. */
  isEnough(slow: Iterable<Endpoint>): boolean;
}

/**
 * Asks the `candidates` that are worth asking in turn: the next one when an attempt ends, or when
 * an endpoint has not answered within `slowMs`. Ends when the verdict says so, or when no attempt
 * is open and no candidate is left; then aborts the open attempts. An abort of `deadline` aborts
 * all attempts. Returns the endpoints that were too late: those without an answer, asked before the
 * one that ended the call.
 */
export function hedge<T>(needs: {
  candidates: readonly Endpoint[];
  attempt: Attempt<T>;
  slowMs: number;
  verdict: Verdict<T>;
  deadline: AbortSignal;
}): Promise<readonly Endpoint[]> {
  const { candidates, attempt, slowMs, verdict, deadline } = needs;
  // Not AbortSignal.any, which would keep its sources from being garbage-collected.
  const stop = new AbortController();
  const open = new Set<Endpoint>();
  const slow = new Set<Endpoint>();
  let nextIndex = 0;
  let askedCount = 0;
  let isSettled = false;
  const giveUp = () => {
    stop.abort(deadline.reason);
  };
  if (deadline.aborted) giveUp();
  else deadline.addEventListener("abort", giveUp, { once: true });

  return new Promise((resolve) => {
    function settle(late: readonly Endpoint[]): void {
      isSettled = true;
      deadline.removeEventListener("abort", giveUp);
      if (open.size > 0) stop.abort();
      resolve(late);
    }

    function start(index: number): void {
      nextIndex = index + 1;
      askedCount++;
      const endpoint = candidates[index]!;
      open.add(endpoint);
      const timer = setTimeout(() => {
        slow.add(endpoint);
        goOn();
      }, slowMs);
      const end = (isLast: boolean) => {
        if (isLast) settle(candidates.slice(0, index).filter((earlier) => open.has(earlier)));
        else goOn();
      };
      attempt(endpoint, stop.signal)
        .finally(() => {
          clearTimeout(timer);
          open.delete(endpoint);
        })
        .then(
          (result) => {
            if (!isSettled) end(verdict.takeResult(endpoint, result));
          },
          (error: unknown) => {
            if (!isSettled) end(verdict.takeError(endpoint, error, askedCount === 1));
          },
        );
    }

    /** Asks the next candidate, waits for the open attempts, or ends the call. */
    function goOn(): void {
      if (isSettled) return;
      const rest = stop.signal.aborted ? [] : candidates.slice(nextIndex);
      const ahead = rest.findIndex((candidate) => verdict.isWorthAsking(candidate));
      if (ahead >= 0) start(nextIndex + ahead);
      else if (open.size === 0 || (slow.isSupersetOf(open) && verdict.isEnough(open)))
        settle([...open]);
    }

    start(0);
  });
}

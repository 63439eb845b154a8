import { setTimeout as sleep } from "node:timers/promises";
import { toError } from "../../observability/thrown.ts";
import { monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { withDeadline } from "./deadline.ts";
import type { EndpointRanking } from "./endpoint-ranking.ts";
import { hedge, type Verdict } from "./hedge.ts";
import type { Attempt, Endpoint } from "./rpc-endpoint.ts";
import { createMethodFailures, type MethodFailures } from "./method-failures.ts";
import type { RpcMethod } from "./rpc-results.ts";
import { isBehind, isOfSlot, isRefusal, RpcError } from "./rpc-error.ts";

/**
 * While `areNeeded`, an incomplete result of `method` counts only when other endpoints have
 * answered too, or have failed for some seconds: one endpoint must not decide about money.
 */
interface NeedForOthers {
  readonly method: RpcMethod;
  readonly areNeeded: () => boolean;
}

interface Call<T> {
  readonly attempt: Attempt<T>;
  readonly isComplete: (result: T) => boolean;
  /** Whether the call contains a transaction, which some endpoints may refuse. */
  readonly withTransaction: boolean;
  /** Absent if an incomplete result of one endpoint counts. */
  readonly others?: NeedForOthers | undefined;
  /** This endpoint is asked only after all others that work. */
  readonly avoided?: Endpoint | undefined;
}

/** A call that two endpoints answer, and more if these results are not enough. */
interface CallOfTwo<T> {
  readonly attempt: Attempt<T>;
  /** Converts an endpoint's error. */
  readonly toResult: (endpoint: Endpoint, error: unknown) => T;
  readonly isEnough: (results: readonly T[]) => boolean;
  /** Whose failures are recorded. */
  readonly method?: RpcMethod;
}

/** The incomplete results of a call so far. */
interface Incomplete<T> {
  last: { readonly result: T } | undefined;
  readonly endpoints: Set<Endpoint>;
}

/** The fraction of the timeout after which a call also goes to the next endpoint. */
const SLOW_AFTER = 1 / 5;
/**
 * The wait before all endpoints are tried again; random, so that callers do not retry at the same
 * time.
 */
const RETRY_MS = [50, 150] as const;
/** The wait while nodes are behind: a slot or two. */
const CATCH_UP_MS = [200, 400] as const;
/**
 * How many times a call asks only the best endpoint while this endpoint is behind: for about 1.2 s.
 */
const TRIES_AT_BEST = 6;

type Ranking = Pick<
  EndpointRanking,
  | "inOrder"
  | "takers"
  | "isBest"
  | "backsOff"
  | "isDown"
  | "mayRecover"
  | "failed"
  | "succeeded"
  | "tookTransaction"
  | "check"
>;

const sleepBetween = ([least, most]: readonly [number, number]) =>
  sleep(least + Math.random() * (most - least));

/** Decides what the results and errors of one try mean, and tells the ranking. */
function createVerdict<T>(
  call: Call<T>,
  ranking: Ranking,
  methodFailures: MethodFailures,
  waitsForBest: boolean,
  incomplete: Incomplete<T>,
) {
  const { others } = call;
  const needsOthers = () => others?.areNeeded() === true;
  const isDown = (endpoint: Endpoint) => methodFailures.isDown(endpoint, others?.method);
  const refusing: Endpoint[] = [];
  /** The last error of an endpoint that may soon answer. */
  let missingAnswer: Error | undefined;
  /** The last result. Incomplete, unless it ended the call. */
  let answer = incomplete.last;
  /** The last failure. No other failure replaces a failure about the slot. */
  let failure: Error | undefined;

  return {
    takeResult(endpoint: Endpoint, result: T): boolean {
      ranking.succeeded(endpoint);
      if (others) methodFailures.succeed(endpoint, others.method);
      answer = { result };
      const isDone = call.isComplete(result);
      if (!isDone) {
        incomplete.last = answer;
        incomplete.endpoints.add(endpoint);
      }
      if (call.withTransaction || (isDone && refusing.length > 0))
        ranking.tookTransaction([endpoint], refusing);
      return isDone;
    },

    takeError(endpoint: Endpoint, error: unknown, isFirst: boolean): boolean {
      ranking.failed(endpoint, error);
      if (isRefusal(error)) refusing.push(endpoint);
      if (others) {
        methodFailures.fail(endpoint, others.method);
        if (methodFailures.mayRecover(endpoint, others.method, error))
          missingAnswer = toError(error);
      }
      const waits = waitsForBest && isFirst && isOfSlot(error) && ranking.isBest(endpoint);
      // Keep a failure about the slot: the call is then retried, because the endpoint may soon
      // catch up.
      if (!isOfSlot(failure)) failure = toError(error);
      return waits;
    },

    /**
     * With a result at hand, an endpoint that backs off is not worth a call. If the call needs
     * others, it is, but for one that is down and has just failed.
     */
    isWorthAsking(candidate: Endpoint): boolean {
      if (!answer) return true;
      if (!others?.areNeeded()) return !ranking.backsOff(candidate);
      return !isDown(candidate) || !methodFailures.hasJustFailed(candidate, others.method);
    },

    /**
     * With a result at hand, slow endpoints are not worth the wait, unless the call needs others,
     * and these are not down. Nor after a failure about the slot: when the call is retried, the
     * answer that was refused for its slot may be accepted.
     */
    isEnough: (slow: Iterable<Endpoint>) =>
      answer ? !needsOthers() || [...slow].every(isDown) : isOfSlot(failure),

    /**
     * Why the result does not count yet, if so: it is incomplete, and this is the error of another
     * endpoint that may soon answer.
     */
    doubt: () => (needsOthers() && answer === incomplete.last ? missingAnswer : undefined),

    /** Returns the result, or throws the failure. */
    outcome(): T {
      if (answer) return answer.result;
      throw failure!;
    },
  } satisfies Verdict<T> & { outcome: () => T; doubt: () => Error | undefined };
}

export type Failover = ReturnType<typeof createFailover>;

/**
 * Makes each call at the first of `endpoints` that works, within `rpcTimeoutMs` in total. Tries
 * endpoints in the order of {@link createEndpointRanking}. A call that takes a fifth of the timeout
 * also goes to the next endpoint; the first complete result counts, and the other attempts are
 * aborted. No error of one endpoint is final: the call goes on to the next. When every endpoint has
 * failed, the call waits briefly and tries all once more; if they are only behind, it repeats this
 * until the timeout. The best endpoint has about 1.2 s to catch up before the next one is asked.
 * Otherwise an endpoint that claims a high slot would receive the reads of every account that was
 * just collected.
 *
 * An incomplete result is not a failure: the call goes on to the next endpoints that do not back
 * off. If none returns a complete result, the call returns the incomplete one without waiting for
 * slow endpoints. A call that needs others waits for them, and asks those that fail or are behind
 * again, until they count as down: all their calls of some seconds have failed. One that is down is
 * asked at most once a second, and is not waited for if it is slow.
 */
export function createFailover(needs: {
  endpoints: readonly Endpoint[];
  ranking: Ranking;
  /** Waits until a call may be made. Rejects if it may not. */
  takeTurn?: (() => Promise<void> | undefined) | undefined;
  rpcTimeoutMs: number;
}) {
  const { endpoints, ranking, takeTurn, rpcTimeoutMs } = needs;

  const methodFailures = createMethodFailures(ranking);

  function avoiding(avoidedEndpoint: Endpoint | undefined, inOrder: readonly Endpoint[]) {
    if (!avoidedEndpoint || ranking.backsOff(avoidedEndpoint)) return inOrder;
    const { others = [], backingOff = [] } = Object.groupBy(
      inOrder.filter((endpoint) => endpoint !== avoidedEndpoint),
      (endpoint) => (ranking.backsOff(endpoint) ? "backingOff" : "others"),
    );
    return [...others, avoidedEndpoint, ...backingOff];
  }

  /**
   * Tries all endpoints once that have not given an incomplete result. `waitsForBest`: only the
   * best one, if only its slot is wrong.
   */
  async function tryAll<T>(
    call: Call<T>,
    deadline: AbortSignal,
    waitsForBest: boolean,
    incomplete: Incomplete<T>,
  ) {
    const verdict = createVerdict(call, ranking, methodFailures, waitsForBest, incomplete);
    const inOrder = avoiding(call.avoided, ranking.inOrder(call.withTransaction));
    const late = await hedge({
      candidates: inOrder.filter((endpoint) => !incomplete.endpoints.has(endpoint)),
      attempt(endpoint, signal) {
        if (call.others) methodFailures.begin(endpoint, call.others.method);
        return call.attempt(endpoint, signal);
      },
      slowMs: rpcTimeoutMs * SLOW_AFTER,
      verdict,
      deadline,
    });
    for (const endpoint of late) {
      ranking.failed(endpoint, "slow");
      if (call.others) methodFailures.fail(endpoint, call.others.method);
    }
    return { result: verdict.outcome(), doubt: verdict.doubt() };
  }

  /**
   * Retries at once if the first try fails because of a slot: another answer may have made that
   * slot acceptable.
   */
  async function tryWithRetries<T>(call: Call<T>, deadline: AbortSignal): Promise<T> {
    const incomplete: Incomplete<T> = { last: undefined, endpoints: new Set() };
    let tries = 0;
    for (let isLast = false; ;) {
      try {
        const waitsForBest = ++tries <= TRIES_AT_BEST;
        const { result, doubt } = await tryAll(call, deadline, waitsForBest, incomplete);
        ranking.check();
        if (!doubt) return result;
        await sleepBetween(CATCH_UP_MS);
        if (deadline.aborted) throw doubt;
      } catch (error) {
        if (isLast || !(error instanceof RpcError) || deadline.aborted) throw error;
        isLast = !isBehind(error);
        if (tries > 1 || !isOfSlot(error)) await sleepBetween(isLast ? RETRY_MS : CATCH_UP_MS);
      }
    }
  }

  const startAtOnce = <T>(call: Call<T>): Promise<T> =>
    withDeadline(rpcTimeoutMs, (deadline) => tryWithRetries(call, deadline));

  async function start<T>(call: Call<T>): Promise<T> {
    await takeTurn?.();
    return startAtOnce(call);
  }

  /**
   * Makes a call at one endpoint, and tells the ranking how it ended. `method`: whose failures are
   * recorded.
   */
  async function callOne<T>(
    endpoint: Endpoint,
    attempt: Attempt<T>,
    deadline: AbortSignal,
    method?: RpcMethod,
  ): Promise<T> {
    if (method) methodFailures.begin(endpoint, method);
    try {
      const result = await attempt(endpoint, deadline);
      ranking.succeeded(endpoint);
      if (method) methodFailures.succeed(endpoint, method);
      return result;
    } catch (error) {
      ranking.failed(endpoint, error);
      if (method) methodFailures.fail(endpoint, method);
      throw error;
    }
  }

  const callAll = <T>(
    some: readonly Endpoint[],
    attempt: Attempt<T>,
    maxMs: number,
  ): Promise<PromiseSettledResult<T>[]> =>
    withDeadline(Math.min(maxMs, rpcTimeoutMs), (deadline) =>
      Promise.allSettled(some.map((endpoint) => callOne(endpoint, attempt, deadline))),
    );

  /**
   * Makes a call at some endpoints, which have the rest of the timeout, but at least a fifth. Those
   * that are down are asked last, and have as much time as has passed since `since`: on a busy
   * machine, the only one with more time would decide alone.
   */
  async function callSome<T>(
    some: readonly Endpoint[],
    since: MonotonicTime,
    { attempt, toResult, method }: CallOfTwo<T>,
  ): Promise<T[]> {
    const ask = (endpoints: readonly Endpoint[], maxMs: number) =>
      Promise.all(
        endpoints.map((endpoint) =>
          withDeadline(maxMs, (deadline) => callOne(endpoint, attempt, deadline, method)).catch(
            (error: unknown) => toResult(endpoint, error),
          ),
        ),
      );
    const { working = [], down = [] } = Object.groupBy(some, (endpoint) =>
      methodFailures.isDown(endpoint, method) ? "down" : "working",
    );
    const leastMs = rpcTimeoutMs * SLOW_AFTER;
    const leftMs = () => Math.max(leastMs, rpcTimeoutMs - msSince(since));
    const results = await ask(working, leftMs());
    const downMs = Math.max(leastMs, Math.min(msSince(since), leftMs()));
    return [...results, ...(await ask(down, downMs))];
  }

  /**
   * Makes a call at the two best endpoints, and then at the others too, unless the two results are
   * enough. Never rejects.
   */
  async function callTwoAtOnce<T>(call: CallOfTwo<T>): Promise<T[]> {
    const since = monotonicNow();
    const candidates = ranking.inOrder();
    const results = await callSome(candidates.slice(0, 2), since, call);
    if (candidates.length <= 2 || call.isEnough(results)) return results;
    return [...results, ...(await callSome(candidates.slice(2), since, call))];
  }

  return {
    /** See {@link createMethodFailures}. */
    mayRecover: methodFailures.mayRecover,

    /**
     * Without `isComplete`, every result is complete. `avoided` is asked only after all other
     * endpoints that work. `others`: see {@link NeedForOthers}.
     */
    call: <T>(
      attempt: Attempt<T>,
      isComplete: (result: T) => boolean = () => true,
      options: Pick<Call<T>, "avoided" | "others"> = {},
    ): Promise<T> => start({ attempt, isComplete, withTransaction: false, ...options }),

    /** Makes a call that waits for no turn. */
    callAtOnce: <T>(
      attempt: Attempt<T>,
      isComplete: (result: T) => boolean = () => true,
      options: Pick<Call<T>, "avoided"> = {},
    ): Promise<T> => startAtOnce({ attempt, isComplete, withTransaction: false, ...options }),

    /**
     * Makes a call that contains a transaction, last at endpoints that refuse transactions. An
     * incomplete result needs others, while `areNeeded`.
     */
    callWithTransaction: <T>(
      method: RpcMethod,
      attempt: Attempt<T>,
      isComplete: (result: T) => boolean,
      options: Pick<Call<T>, "avoided"> & Partial<Pick<NeedForOthers, "areNeeded">> = {},
    ): Promise<T> =>
      start({
        attempt,
        isComplete,
        withTransaction: true,
        others: { method, areNeeded: options.areNeeded ?? (() => true) },
        avoided: options.avoided,
      }),

    /**
     * Makes a call at every configured endpoint at once, within `maxMs`. Returns each endpoint's
     * result, in order.
     */
    callEach: <T>(attempt: Attempt<T>, maxMs = rpcTimeoutMs): Promise<PromiseSettledResult<T>[]> =>
      callAll(endpoints, attempt, maxMs),

    callTwoAtOnce,

    /**
     * As `callTwoAtOnce`, when it is the caller's turn. Rejects with the error of a refused turn.
     */
    async callTwo<T>(call: CallOfTwo<T>): Promise<T[]> {
      await takeTurn?.();
      return callTwoAtOnce(call);
    },

    /**
     * Makes a call that contains a transaction at every endpoint at once, without those that refuse
     * transactions.
     */
    async callEachWithTransaction<T>(attempt: Attempt<T>): Promise<PromiseSettledResult<T>[]> {
      const takers = ranking.takers();
      const accepting: Endpoint[] = [];
      const refusing: Endpoint[] = [];
      const results = await callAll(takers, attempt, rpcTimeoutMs);
      takers.forEach((endpoint, i) => {
        const result = results[i]!;
        if (result.status === "fulfilled") accepting.push(endpoint);
        else if (isRefusal(result.reason)) refusing.push(endpoint);
      });
      ranking.tookTransaction(accepting, refusing);
      return results;
    },
  };
}

import type { Logger } from "../../observability/log.ts";
import { msSince } from "../../time/monotonic.ts";
import { createNewestSlot } from "../slots/newest-slot.ts";
import type { State } from "../slots/progress.ts";
import { createSuspensionCheck } from "../slots/suspension.ts";
import { createEndpointBackoff } from "./endpoint-backoff.ts";
import { createEndpointChecks } from "./endpoint-checks.ts";
import { createEndpointMembership, IS_FOREIGN } from "./endpoint-membership.ts";
import { createEndpointProgress, OVER_MS, toState } from "./endpoint-progress.ts";
import type { CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import { isOfSlot, isRefusal, RpcError } from "./rpc-error.ts";
import type { RpcMethod } from "./rpc-results.ts";

/**
 * The methods whose answers must be current. Other answers, such as a transaction's status, may be
 * of any slot.
 */
const OF_NOW: readonly RpcMethod[] = [
  "getMultipleAccounts",
  "simulateTransaction",
  "getLatestBlockhash",
  "getSlot",
];

const FAILS =
  "a chain endpoint fails: the others are tried first; if this lasts, check its status and its plan's limits";
const REFUSES =
  "a chain endpoint refuses a transaction that another takes: the others get the transactions; if this lasts, change the provider";

/** The order of use: endpoints with a lower place are used first. */
const PLACES = { healthy: 0, faulty: 1, unverified: 2, failing: 3 };

export type EndpointRanking = ReturnType<typeof createEndpointRanking>;

/**
 * Decides which endpoints are used, in which order, and which of their answers are accepted.
 * `endpoints`: most preferred first. A single endpoint is used even with a fault.
 *
 * - An endpoint that is slow or fails, for example with a 429, backs off
 *   ({@link createEndpointBackoff}). A success resets the backoff.
 * - An endpoint that refuses a transaction which another endpoint takes backs off for calls with a
 *   transaction. If all refuse it, none backs off.
 * - An endpoint on the wrong cluster is not used ({@link createEndpointMembership}).
 * - An endpoint whose state is not current is used only while no better endpoint answers
 *   ({@link createEndpointProgress}).
 */
export function createEndpointRanking(needs: {
  endpoints: readonly Endpoint[];
  /** Calls an endpoint without the ranking's checks. */
  callEndpoint: CallEndpoint;
  rpcTimeoutMs: number;
  log: Logger;
}) {
  const { endpoints, log } = needs;
  const isOnly = endpoints.length === 1;
  /** How often the machine was suspended. */
  let suspensions = 0;
  /**
   * Throws {@link RpcError} `slot` if the machine was suspended during the call: the answer, or the
   * failure, is from before.
   */
  const callUnsuspended: CallEndpoint = async (...call) => {
    startAnewAfterSuspension();
    const suspensionsBefore = suspensions;
    const answer = needs.callEndpoint(...call);
    await Promise.allSettled([answer]);
    startAnewAfterSuspension();
    if (suspensions === suspensionsBefore) return answer;
    const [endpoint, method] = call;
    throw new RpcError("slot", method, endpoint.host);
  };
  const partsNeeds = { ...needs, callEndpoint: callUnsuspended };
  const failures = createEndpointBackoff({ endpoints, warning: FAILS, log });
  const refusals = createEndpointBackoff({ endpoints, warning: REFUSES, log });
  const membership = createEndpointMembership(partsNeeds);
  const backsOff = (endpoint: Endpoint) =>
    membership.isForeign(endpoint) || failures.isBackingOff(endpoint);
  const isDown = (endpoint: Endpoint) =>
    membership.isForeign(endpoint) || failures.isDown(endpoint);
  const progress = createEndpointProgress({ ...partsNeeds, backsOff });
  const newest = createNewestSlot();
  const wasSuspended = createSuspensionCheck();
  const checks = createEndpointChecks({ endpoints, failures, membership, progress, fail });

  /** An endpoint's place in the order of use: that of the first rule that fits. */
  function placeOf(endpoint: Endpoint, withTransaction: boolean): number {
    if (membership.isForeign(endpoint)) return PLACES.failing;
    if (failures.isBackingOff(endpoint)) return PLACES.failing;
    if (withTransaction && refusals.isBackingOff(endpoint)) return PLACES.failing;
    if (!membership.isVerified(endpoint)) return PLACES.unverified;
    if (progress.isFaulty(endpoint)) return PLACES.faulty;
    return PLACES.healthy;
  }

  function inOrder(withTransaction = false): readonly Endpoint[] {
    if (isOnly) return endpoints;
    return endpoints.toSorted((a, b) => placeOf(a, withTransaction) - placeOf(b, withTransaction));
  }

  /**
   * After a suspension, forgets what endpoints reported before it: compared with that, true slots
   * and heights look impossible.
   */
  function startAnewAfterSuspension(): void {
    if (!wasSuspended()) return;
    suspensions++;
    failures.forget();
    refusals.forget();
    progress.forget();
    newest.forgetBest();
    log.info("the clock jumped: the chain endpoints are judged anew");
  }

  function fail(endpoint: Endpoint, cause: unknown): void {
    if (isOfSlot(cause)) return;
    membership.doubt(endpoint);
    failures.fail(endpoint, cause);
  }

  /** Records an answer's slot and clock. Returns whether the answer may be used. */
  function accept(endpoint: Endpoint, state: State): boolean {
    const { slot } = state;
    const isBest = inOrder()[0] === endpoint;
    if (isBest) newest.noteBest(slot);
    if (!progress.take(endpoint, state)) return false;
    if (isBest) newest.takeBest(slot, progress.advancedAt(endpoint));
    else newest.take(slot);
    return true;
  }

  return {
    /**
     * Whether the endpoint comes first and is healthy: if it is behind, it should soon catch up
     * with the others.
     */
    isBest: (endpoint: Endpoint) =>
      inOrder()[0] === endpoint && placeOf(endpoint, false) === PLACES.healthy,

    /** All endpoints: first the verified ones without a fault, in order of preference. */
    inOrder(withTransaction = false): readonly Endpoint[] {
      if (!isOnly) progress.logFaults();
      return inOrder(withTransaction);
    },

    /**
     * The endpoints that get each transaction: all, without those that back off after refusals if
     * another endpoint works.
     */
    takers(): readonly Endpoint[] {
      const takers = endpoints.filter((endpoint) => !refusals.isBackingOff(endpoint));
      return takers.every(backsOff) ? endpoints : takers;
    },

    backsOff,

    /** Whether the endpoint is on another cluster, or has failed for some seconds. */
    isDown,

    /**
     * Whether an endpoint that has just failed with this error may soon answer: others must not
     * decide alone meanwhile. Ask after `failed`.
     */
    mayRecover: (endpoint: Endpoint, error: unknown) => !isRefusal(error) && !isDown(endpoint),

    /** Whether the endpoint's state has a fault: what it does not know then counts for nothing. */
    isOverruled: progress.isOverruled,

    /**
     * Records a call's error, or "slow". An error about the slot or the transaction causes no
     * backoff.
     */
    failed(endpoint: Endpoint, reason: unknown): void {
      if (isRefusal(reason)) return;
      if (reason === "slow" || reason instanceof RpcError) fail(endpoint, reason);
    },

    succeeded(endpoint: Endpoint): void {
      if (failures.hasFailed(endpoint))
        log.info({ host: endpoint.host }, "a chain endpoint works again");
      failures.succeed(endpoint);
    },

    /** Records who took a transaction, and who refused it. */
    tookTransaction(takers: readonly Endpoint[], refusing: readonly Endpoint[]): void {
      if (takers.length === 0) return;
      for (const endpoint of takers) refusals.succeed(endpoint);
      for (const endpoint of refusing) refusals.fail(endpoint);
    },

    /** What has been wrong with an endpoint within the last minute, for the operator. */
    problems(): string[] {
      if (isOnly) return [];
      return endpoints.flatMap((endpoint) =>
        [
          membership.isForeign(endpoint) && IS_FOREIGN,
          msSince(failures.lastFailureAt(endpoint)) <= OVER_MS && FAILS,
          msSince(refusals.lastFailureAt(endpoint)) <= OVER_MS && REFUSES,
          progress.loggedFault(endpoint),
        ].flatMap((text) => (text ? `${endpoint.host}: ${text}` : [])),
      );
    },

    /**
     * Calls an endpoint. Throws {@link RpcError} if the endpoint is on another cluster, if its
     * answer is not accepted, or if the answer's slot is below the requested `minContextSlot`,
     * which some nodes ignore.
     */
    callEndpoint: (async (endpoint, method, params, signal) => {
      const call = () => callUnsuspended(endpoint, method, params, signal);
      let state: State;
      try {
        const result = await (isOnly
          ? call()
          : membership.callVerified(endpoint, method, call, signal));
        if (!OF_NOW.includes(method)) return result;
        state = toState(result, params);
        const { minContextSlot = 0 } = (params.at(-1) ?? {}) as { minContextSlot?: number };
        if (accept(endpoint, state) && state.slot >= minContextSlot) return result;
      } catch (error) {
        // A node that has not reached the required slot reports its own slot.
        if (error instanceof RpcError && error.slot !== undefined)
          accept(endpoint, { slot: error.slot });
        throw error;
      }
      throw new RpcError("slot", method, endpoint.host, state);
    }) satisfies CallEndpoint,

    /** The newest slot of all accepted answers; 0 before the first ({@link createNewestSlot}). */
    newestSlot: newest.slot,
    takeSlot: newest.take,
    isReached: newest.isReached,
    isReachedAt: progress.isReachedAt,
    takeHeight: progress.takeHeight,

    /** See {@link createEndpointChecks}. */
    check(): void {
      if (!isOnly) checks.check();
    },

    readClusters: checks.readClusters,

    /** The cluster's genesis hash; undefined until an endpoint has answered. */
    genesisHash: membership.rightHash,
  };
}

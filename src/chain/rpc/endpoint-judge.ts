import type { Logger } from "../../observability/log.ts";
import { CLOCK_SYSVAR, decodeClock } from "../slots/clock.ts";
import {
  createProgress,
  FAULTS,
  MAX_AGE_MS,
  MOST_RATE,
  type Fault,
  type Progress,
  type State,
} from "../slots/progress.ts";
import { createBackoff, type Backoff } from "./backoff.ts";
import { FINALIZED } from "./commitment.ts";
import { untilAborted, withDeadline } from "./deadline.ts";
import type { CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import { isOfSlot, isRefusal, isRetryable, RpcError, toRpcError } from "./rpc-error.ts";
import type { RpcMethod } from "./rpc-results.ts";

interface Standing {
  readonly endpoint: Endpoint;
  readonly progress: Progress;
  /** The genesis hash that the endpoint last reported; undefined before its first report. */
  genesisHash: string | undefined;
  isForeign: boolean;
  /**
   * When the genesis hash was last read; undefined before the first read, and after each failure.
   */
  verifiedAt: number | undefined;
  verifying: Promise<void> | undefined;
  isChecking: boolean;
  /** While it is active, the other endpoints are tried first. */
  readonly backoff: Backoff;
  /** The same for calls with a transaction: counts refusals of what another endpoint took. */
  readonly refusals: Backoff;
  /** The fault that was logged, and when it was last seen. */
  logged: { readonly fault: Fault; at: number } | undefined;
}

/** An endpoint's cluster, or the error if the endpoint does not answer. */
export interface Cluster {
  readonly endpoint: Endpoint;
  readonly genesisHash?: string | undefined;
  readonly error?: RpcError;
}

/** While there are calls, an endpoint that has been silent for this long is asked for its state. */
const CHECK_AFTER_MS = 2_000;
const VERIFY_AFTER_MS = 60_000;
/** For this long, an endpoint's last answer describes its state. */
const KNOWN_MS = 10_000;
/**
 * When the best endpoint has been below the newest slot for this long, its slot becomes the newest.
 */
const LOST_MS = 10_000;
/** These failures in a row, each after a backoff, take at least 3.5 s. */
const FAILURES_WHEN_DOWN = 4;
/** A fault that has not been seen for this long is over. */
const OVER_MS = 60_000;
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

const TEXTS: Readonly<Record<Fault, string>> = {
  moved: "a chain endpoint's slot jumps",
  old: "a chain endpoint's state is more than 15 s old by its own clock",
  still: "a chain endpoint's slot stands still",
};

export type EndpointJudge = ReturnType<typeof createEndpointJudge>;

/**
 * Decides which endpoints are used, in which order, and which of their answers are accepted.
 * `endpoints`: most preferred first.
 *
 * - An endpoint that is slow or fails, for example with a 429, backs off ({@link createBackoff}). A
 *   success resets the backoff.
 * - An endpoint that refuses a transaction which another endpoint takes backs off for calls with a
 *   transaction. If all refuse it, none backs off.
 * - An endpoint on the wrong cluster is not used: its answers about our accounts look right, but
 *   are wrong. The most preferred endpoint that has answered decides which genesis hash is right.
 *   If this endpoint later reports a different hash, the earlier hash stays right while another
 *   endpoint reports it: a host name may move to a node of another cluster. The hash is read before
 *   the first use, in the background after a failure, and once a minute. After a failure, a caller
 *   waits for this read only if no other endpoint works.
 * - An endpoint with a {@link Fault} is used only while no better endpoint answers. Only its own
 *   answers decide whether it has a fault: an endpoint cannot make others look bad by claiming to
 *   be ahead. If all endpoints look old, this machine's clock is wrong, and all are used. A single
 *   endpoint is used even with a fault.
 */
export function createEndpointJudge(needs: {
  endpoints: readonly Endpoint[];
  /** Calls an endpoint without the judge's checks. */
  callEndpoint: CallEndpoint;
  rpcTimeoutMs: number;
  log: Logger;
}) {
  const { endpoints, rpcTimeoutMs, log } = needs;
  const now = () => performance.now();
  const isOnly = endpoints.length === 1;
  const all = endpoints.map((endpoint): Standing => ({
    ...{ endpoint, progress: createProgress(isOnly), genesisHash: undefined, isForeign: false },
    ...{ verifiedAt: undefined, verifying: undefined, isChecking: false },
    ...{ backoff: createBackoff(), refusals: createBackoff(), logged: undefined },
  }));
  const byEndpoint = new Map(all.map((standing) => [standing.endpoint, standing]));
  const of = (endpoint: Endpoint) => byEndpoint.get(endpoint)!;
  let rightHash: string | undefined;
  /** The last answer of the best endpoint. */
  let best = { slot: 0, at: -Infinity };
  let newestSlot = 0;
  /**
   * When the best endpoint's answers fell below the newest slot; undefined while they are not below
   * it.
   */
  let belowSince: number | undefined;

  const backsOff = ({ backoff, isForeign }: Standing) => isForeign || backoff.isActive();
  const rankOf = ({ progress }: Standing) => FAULTS.indexOf(progress.fault()!) + 1;
  const isKnown = ({ progress }: Standing) =>
    progress.slot() > 0 && progress.silentMs() <= KNOWN_MS;

  /**
   * The endpoint's fault, if a better endpoint answers. `orUnknown`: an endpoint of unknown state
   * counts as better.
   */
  function faultOf(standing: Standing, orUnknown = false): Fault | undefined {
    const { progress } = standing;
    const fault = progress.fault();
    if (!fault) return undefined;
    const isBetter = (other: Standing) =>
      rankOf(other) < rankOf(standing) &&
      // Until this state is old, an endpoint at the same slot is not better: the whole chain may
      // stand still.
      (fault !== "still" || other.progress.slot() > progress.slot() || progress.isOld());
    const others = all.filter((other) => other !== standing && !backsOff(other));
    return others.some((other) => (isKnown(other) ? isBetter(other) : orUnknown))
      ? fault
      : undefined;
  }

  /** Logs a fault once, although it may come and go. */
  function logFault(standing: Standing): void {
    const { endpoint, logged } = standing;
    const { host } = endpoint;
    const fault = faultOf(standing);
    if (fault) {
      if (fault !== logged?.fault) log.warn({ host }, `${TEXTS[fault]}: the others are used`);
      standing.logged = { fault, at: now() };
    } else if (logged && now() - logged.at > OVER_MS) {
      log.info({ host }, "a chain endpoint's state is as good as the others' again");
      standing.logged = undefined;
    }
  }

  function orderOf(each: Standing, withTransaction: boolean): number {
    if (backsOff(each) || (withTransaction && each.refusals.isActive())) return 3;
    if (each.verifiedAt === undefined) return 2;
    return faultOf(each) ? 1 : 0;
  }
  function inOrder(withTransaction = false): readonly Standing[] {
    if (isOnly) return all;
    return all.toSorted((a, b) => orderOf(a, withTransaction) - orderOf(b, withTransaction));
  }

  function fail(standing: Standing, cause: unknown): void {
    const { endpoint, backoff } = standing;
    standing.verifiedAt = undefined;
    if (backoff.fail() && backoff.failuresInARow() === 1 && !isOnly)
      log.warn(
        { host: endpoint.host, err: cause },
        "a chain endpoint fails: the others are tried first; if this lasts, check its status and its plan's limits",
      );
  }

  function learn(standing: Standing, genesisHash: string): void {
    const preferred = all.find((each) => each.genesisHash !== undefined);
    Object.assign(standing, { genesisHash, verifiedAt: now() });
    const isMorePreferred = !preferred || all.indexOf(standing) < all.indexOf(preferred);
    if (isMorePreferred) rightHash = genesisHash;
    else if (!all.some((each) => each.genesisHash === rightHash)) rightHash = preferred.genesisHash;
    for (const each of all) {
      const isForeign = each.genesisHash !== undefined && each.genesisHash !== rightHash;
      if (isForeign && !each.isForeign)
        log.error(
          { host: each.endpoint.host },
          "a chain endpoint is on another cluster than the others and is not used: check SOLANA_RPC_URL",
        );
      each.isForeign = isForeign;
    }
  }

  function assertNotForeign({ endpoint: { host }, isForeign }: Standing): void {
    if (isForeign) throw new RpcError("cluster", "getGenesisHash", host);
  }

  /** Reads the genesis hash. All callers share one read, which has its own deadline. */
  function verify(standing: Standing): Promise<void> {
    const { endpoint } = standing;
    const read = (deadline: AbortSignal) =>
      needs.callEndpoint(endpoint, "getGenesisHash", [], deadline);
    standing.verifying ??= withDeadline(rpcTimeoutMs, read)
      .then((genesisHash) => {
        learn(standing, genesisHash);
      })
      .finally(() => {
        standing.verifying = undefined;
      });
    return standing.verifying;
  }

  async function readState({ endpoint, progress }: Standing): Promise<void> {
    const params = [[CLOCK_SYSVAR], { ...FINALIZED, encoding: "base64" }];
    const read = (deadline: AbortSignal) =>
      needs.callEndpoint(endpoint, "getMultipleAccounts", params, deadline);
    progress.take(toState(await withDeadline(rpcTimeoutMs, read), params));
  }

  /** Whether the chain can have reached `slot` by now, given the best endpoint's last answer. */
  const isReached = (slot: number) =>
    best.slot === 0 || slot <= best.slot + ((now() - best.at + MAX_AGE_MS) / 1_000) * MOST_RATE;

  /**
   * Raises the newest slot to `slot` if the chain can have reached it. Any endpoint or replica may
   * report `slot`.
   */
  function takeSlot(slot: number): void {
    if (slot > newestSlot && isReached(slot)) newestSlot = slot;
  }

  /** Records an answer's slot and clock. Returns whether the answer may be used. */
  function accept(standing: Standing, state: State): boolean {
    const { progress } = standing;
    const { slot } = state;
    const isBest = inOrder()[0] === standing;
    if (isBest && slot < newestSlot) belowSince ??= now();
    if (!progress.take(state) || faultOf(standing, true)) return false;
    if (!isBest) takeSlot(slot);
    else {
      best = { slot, at: now() };
      const isLost =
        belowSince !== undefined &&
        now() - belowSince >= LOST_MS &&
        progress.advancedAt() > belowSince;
      if (isLost || slot >= newestSlot) {
        newestSlot = slot;
        belowSince = undefined;
      }
    }
    return true;
  }

  /**
   * Makes a call, and reads the genesis hash of an unverified endpoint: before the call if the call
   * sends a transaction, or if the cluster is unknown or wrong; otherwise at the same time.
   */
  async function callVerified<T>(
    standing: Standing,
    method: RpcMethod,
    call: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const { endpoint, verifiedAt, genesisHash, isForeign } = standing;
    const verified = verifiedAt === undefined ? untilAborted(verify(standing), signal) : undefined;
    const isSend = method === "sendTransaction";
    try {
      if (isSend || genesisHash === undefined || isForeign) await verified;
      assertNotForeign(standing);
      const [result] = await Promise.all([call(), verified]);
      // In the meantime, a more preferred endpoint may have changed which cluster is right.
      assertNotForeign(standing);
      return result;
    } catch (cause) {
      throw toRpcError(cause, method, endpoint.host);
    }
  }

  return {
    /**
     * Whether the endpoint comes first and is healthy: if it is behind, it should soon catch up
     * with the others.
     */
    isBest: (endpoint: Endpoint) =>
      inOrder()[0] === of(endpoint) && orderOf(of(endpoint), false) === 0,

    /** All endpoints: first the verified ones without a fault, in order of preference. */
    inOrder(withTransaction = false): readonly Endpoint[] {
      if (isOnly) return endpoints;
      all.forEach(logFault);
      return inOrder(withTransaction).map(({ endpoint }) => endpoint);
    },

    /**
     * The endpoints that get each transaction: all, without those that back off after refusals if
     * another endpoint works.
     */
    takers(): readonly Endpoint[] {
      const takers = all.filter(({ refusals }) => !refusals.isActive());
      return (takers.every(backsOff) ? all : takers).map(({ endpoint }) => endpoint);
    },

    backsOff: (endpoint: Endpoint) => backsOff(of(endpoint)),

    /** Whether the endpoint is on another cluster, or has failed for some seconds. */
    isDown: (endpoint: Endpoint) =>
      of(endpoint).isForeign || of(endpoint).backoff.failuresInARow() >= FAILURES_WHEN_DOWN,

    /** Whether the endpoint's state has a {@link Fault}, and a better endpoint answers. */
    hasFault: (endpoint: Endpoint) => faultOf(of(endpoint)) !== undefined,

    /**
     * Records a call's error, or "slow". Errors about the slot, the transaction or the request
     * cause no backoff.
     */
    failed(endpoint: Endpoint, reason: unknown): void {
      const isHealthy =
        isOfSlot(reason) || isRefusal(reason) || !(reason === "slow" || isRetryable(reason));
      if (!isHealthy) fail(of(endpoint), reason);
    },

    succeeded(endpoint: Endpoint): void {
      const { backoff } = of(endpoint);
      if (backoff.failuresInARow() > 0)
        log.info({ host: endpoint.host }, "a chain endpoint works again");
      backoff.reset();
    },

    /** Records who took a transaction, and who refused it. */
    tookTransaction(takers: readonly Endpoint[], refusing: readonly Endpoint[]): void {
      if (takers.length === 0) return;
      for (const endpoint of takers) of(endpoint).refusals.reset();
      for (const { endpoint, refusals } of refusing.map(of))
        if (refusals.fail() && refusals.failuresInARow() === 1)
          log.warn(
            { host: endpoint.host },
            "a chain endpoint refuses a transaction that another takes: the others get the transactions; if this lasts, change the provider",
          );
    },

    /**
     * Calls an endpoint. Throws {@link RpcError} if the endpoint is on another cluster, if its
     * answer is not accepted, or if the answer's slot is below the requested `minContextSlot`,
     * which some nodes ignore.
     */
    callEndpoint: (async (endpoint, method, params, signal) => {
      const standing = of(endpoint);
      const call = () => needs.callEndpoint(endpoint, method, params, signal);
      let state: State;
      try {
        const result = await (isOnly ? call() : callVerified(standing, method, call, signal));
        if (!OF_NOW.includes(method)) return result;
        state = toState(result, params);
        const { minContextSlot = 0 } = (params.at(-1) ?? {}) as { minContextSlot?: number };
        if (accept(standing, state) && state.slot >= minContextSlot) return result;
      } catch (error) {
        // A node that has not reached the required slot reports its own slot.
        if (error instanceof RpcError && error.slot !== undefined)
          accept(standing, { slot: error.slot });
        throw error;
      }
      throw new RpcError("slot", method, endpoint.host, state);
    }) satisfies CallEndpoint,

    /**
     * The newest slot of all accepted answers; 0 before the first. If the best endpoint advances
     * but stays below it for 10 s, that endpoint's slot replaces it: the higher slot was wrong, or no
     * endpoint that reached it answers any more.
     */
    newestSlot: () => newestSlot,
    takeSlot,
    isReached,

    /**
     * Reads the state of endpoints that no call has used lately, and the genesis hash where that is
     * due.
     */
    check(): void {
      if (isOnly) return;
      for (const standing of all) {
        const { progress, verifiedAt, backoff } = standing;
        const isSilent = progress.silentMs() >= CHECK_AFTER_MS;
        const isDue =
          verifiedAt === undefined
            ? isSilent || backoff.failuresInARow() > 0
            : now() - verifiedAt >= VERIFY_AFTER_MS;
        if (standing.isChecking || backoff.isActive() || !(isSilent || isDue)) continue;
        standing.isChecking = true;
        void (isDue ? verify(standing) : Promise.resolve())
          .then(() => {
            assertNotForeign(standing);
            return isSilent ? readState(standing) : undefined;
          })
          .catch((error: unknown) => {
            fail(standing, error);
          })
          .finally(() => {
            standing.isChecking = false;
          });
      }
    },

    /**
     * Reads each endpoint's cluster and state, before the first calls. Results are in order of
     * preference.
     */
    readClusters: () =>
      Promise.all(
        all.map(async (standing): Promise<Cluster> => {
          const { endpoint } = standing;
          const state = readState(standing).catch((cause: unknown) => {
            fail(standing, cause);
          });
          try {
            await Promise.all([verify(standing), state]);
            return { endpoint, genesisHash: standing.genesisHash };
          } catch (cause) {
            return { endpoint, error: toRpcError(cause, "getGenesisHash", endpoint.host) };
          }
        }),
      ),

    /** The cluster's genesis hash; undefined until an endpoint has answered. */
    genesisHash: () => rightHash,
  };
}

/** Returns a result's slot and clock. Reads of accounts begin with the clock sysvar. */
function toState(result: unknown, [keys]: readonly unknown[]): State {
  if (typeof result === "number") return { slot: result };
  const { context, value } = result as { context: { slot: number }; value: unknown };
  const hasClock = Array.isArray(keys) && keys[0] === CLOCK_SYSVAR;
  const clock = hasClock ? (value as ({ data: Buffer } | null)[])[0] : undefined;
  return { slot: context.slot, clock: decodeClock(clock?.data) };
}

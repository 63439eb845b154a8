import type { Logger } from "../../observability/log.ts";
import { joinInFlight } from "../../store/memoize.ts";
import { afterFailure, isBackingOff, type Backoff } from "../../time/backoff.ts";
import {
  addMs,
  latest,
  LONG_AGO,
  monotonicNow,
  msSince,
  msUntil,
  toIsoTime,
  type MonotonicTime,
} from "../../time/monotonic.ts";
import { CLOCK_SYSVAR, decodeClock } from "../primitives/clock.ts";
import { FINALIZED } from "./commitment.ts";
import { untilAborted, withDeadline } from "../../upstream/deadline.ts";
import { isTimeout } from "../../upstream/http.ts";
import type { CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import { isBehind, isRefusal, isUnsupported, RpcError, toRpcError } from "./rpc-error.ts";
import type { RpcMethod } from "./rpc-results.ts";

/**
 * Kinds of calls that fail and back off apart. `sends`: questions about the outcome of a sent
 * transaction, which go to endpoints in any state.
 */
export type Kind = (typeof KINDS)[number];
const KINDS = ["reads", "histories", "sends"] as const;

/** An endpoint's cluster, or the error if the endpoint does not answer. */
export interface Cluster {
  readonly endpoint: Endpoint;
  readonly genesisHash?: string | undefined;
  readonly error?: RpcError;
}

type State = ReturnType<typeof newState>;

/** After a first failure, and at most. A success shortens the next wait only after a while. */
const BACKOFF = { firstMs: 1_000, longestMs: 30_000 };
const FORGIVEN_AFTER_MS = 10_000;
/** When all reads have failed for so long, another node may answer next. */
const OUTAGE_MS = 60_000;
/** How long a problem is one after it was last seen, and how often a foreign endpoint is asked. */
const MINUTE_MS = 60_000;
/** While there are calls, an endpoint that has been silent for this long is read. */
const SILENT_MS = 2_000;
/** A node that is further behind than another one is passed over. Slots take 200 ms. */
const MAX_BEHIND_MS = 15_000;
const MAX_BEHIND_SLOTS = 75;
/** Nodes usually differ by less than a second. */
export const SLOTS_PER_SECOND = 5;
/** A slot this far from where the endpoint can be may be another cluster's. */
const MAX_JUMP_SLOTS = 1_000;
const MOST_SLOTS_PER_SECOND = 10;
/** The methods that read finalized state, which must be current. Others report the newest slot. */
const OF_NOW: readonly RpcMethod[] = [
  "getMultipleAccounts",
  "simulateTransaction",
  "getLatestBlockhash",
];

/** The parameters of a call whose answer shows the slot and the time of an endpoint's state. */
export const READ_CLOCK = [[CLOCK_SYSVAR], { ...FINALIZED, encoding: "base64" }];

const FAILS =
  "a chain endpoint fails: the others are tried first; if this lasts, check its status and its plan's limits";
const REFUSES =
  "a chain endpoint refuses a transaction: the others are asked; if this lasts, change the provider";
const IS_BEHIND =
  "a chain endpoint is more than 15 s behind another one, which is used: check its status";
const IS_FOREIGN =
  "a chain endpoint is on another cluster than the first one and is not used: check SOLANA_RPC_URL";

/** How calls of one kind end at an endpoint. */
const newRecord = () => ({
  /** The first failure since the last success. */
  failsSince: undefined as MonotonicTime | undefined,
  backoff: undefined as Backoff | undefined,
  /** The provider wants no calls until then. */
  notBefore: LONG_AGO,
});

const newState = (endpoint: Endpoint) => ({
  endpoint,
  firstHash: undefined as string | undefined,
  genesisHash: undefined as string | undefined,
  /** When the genesis hash was read; undefined before, and after an outage. */
  verifiedAt: undefined as MonotonicTime | undefined,
  records: { reads: newRecord(), histories: newRecord(), sends: newRecord() },
  slot: 0,
  heardAt: LONG_AGO,
  /** How many slots its last answer was below the newest one. */
  lag: 0,
  /** The chain's time minus this machine's in its last answer, in ms; NaN before. */
  clockOffset: NaN,
  /** Since the start, for the operator. */
  calls: { made: 0, failed: 0 },
  lastError: undefined as { readonly message: string; readonly at: MonotonicTime } | undefined,
});

/** Whether reads work is found out without callers. Of histories, the next one must show it. */
function fails({ records }: State, kind: Kind): boolean {
  const { failsSince, backoff } = records[kind];
  return failsSince !== undefined && (kind !== "histories" || isBackingOff(backoff));
}
const isLater = (a: State, b: State) =>
  b.lag - a.lag > MAX_BEHIND_SLOTS || a.clockOffset - b.clockOffset > MAX_BEHIND_MS;

export type Endpoints = ReturnType<typeof createEndpoints>;

/**
 * Knows what may be wrong with each endpoint, and in which order to use them. `endpoints`: most
 * preferred first. An endpoint
 *
 * - *is foreign*, if its genesis hash is another than the most preferred endpoint first had that
 *   has answered. It is not used, and is asked again each minute. The hash is read before the first
 *   use, after an outage, and when the slot jumps. An only endpoint is never foreign.
 * - *fails* calls of one kind, from an error or a slow answer until a call succeeds in time. The
 *   others come first. After a growing wait it is tried again: for reads without a caller.
 * - *is behind*, if another one's state is far newer. If all look old, this machine's clock is
 *   wrong, and none is behind.
 */
export function createEndpoints(needs: {
  endpoints: readonly Endpoint[];
  /** Calls an endpoint without any check. */
  callEndpoint: CallEndpoint;
  rpcTimeoutMs: number;
  log: Logger;
}) {
  const { rpcTimeoutMs, log } = needs;
  const slowMs = rpcTimeoutMs / 10;
  const all = needs.endpoints.map(newState);
  const states = new Map(all.map((state) => [state.endpoint, state]));
  const of = (endpoint: Endpoint): State => states.get(endpoint)!;
  const isOnly = all.length === 1;
  /** The first hash of the most preferred endpoint that has answered. */
  const rightHash = () => all.find(({ firstHash }) => firstHash)?.firstHash;
  const isForeign = ({ genesisHash }: State) =>
    !isOnly && genesisHash !== undefined && genesisHash !== rightHash();
  const isUsable = (state: State) =>
    isOnly || (state.verifiedAt !== undefined && !isForeign(state));
  const verifying = new Map<Endpoint, Promise<void>>();
  const reading = new Map<Endpoint, Promise<void>>();
  /** When each endpoint's problem was last seen. */
  const problems = new Map<string, MonotonicTime>();
  /** The newest slot that the endpoints have shown; 0 before. */
  let shownSlot = 0;
  /** Whether a better endpoint works. While nobody asks that one, its clock stays as it was. */
  const isBehindOthers = (state: State) =>
    all.some((each) => isUsable(each) && !fails(each, "reads") && isLater(each, state));

  function report({ endpoint: { host } }: State, problem: string): void {
    if (isOnly) return;
    const id = `${host}: ${problem}`;
    const isNew = msSince(problems.get(id) ?? LONG_AGO) > MINUTE_MS;
    if (isNew) log[problem === IS_FOREIGN ? "error" : "warn"]({ host }, problem);
    problems.set(id, monotonicNow());
  }

  /** Makes a call, and counts it for the operator. */
  const callOnce: CallEndpoint = async (endpoint, method, params, signal) => {
    const state = of(endpoint);
    state.calls.made++;
    try {
      return await needs.callEndpoint(endpoint, method, params, signal);
    } catch (cause) {
      // Otherwise nobody needs the result.
      if (!signal.aborted || isTimeout(signal.reason)) {
        state.calls.failed++;
        const { message } = toRpcError(cause, method, endpoint.host);
        state.lastError = { message, at: monotonicNow() };
      }
      throw cause;
    }
  };

  /** Reads the genesis hash. All callers share one read, which has its own deadline. */
  const verify = (state: State): Promise<void> =>
    joinInFlight(verifying, state.endpoint, async () => {
      const hash = await withDeadline(rpcTimeoutMs, (deadline) =>
        callOnce(state.endpoint, "getGenesisHash", [], deadline),
      );
      state.firstHash ??= hash;
      Object.assign(state, { genesisHash: hash, verifiedAt: monotonicNow() });
      for (const each of all) if (isForeign(each)) report(each, IS_FOREIGN);
    });

  async function assertUsable(state: State, signal: AbortSignal): Promise<void> {
    if (!isOnly && state.verifiedAt === undefined) await untilAborted(verify(state), signal);
    if (!isUsable(state)) throw new RpcError("cluster", "getGenesisHash", state.endpoint.host);
  }

  /** Records the slot of an answer. */
  async function hear(state: State, slot: number, isFinal: boolean, signal: AbortSignal) {
    const most = state.slot + (msSince(state.heardAt) / 1_000) * MOST_SLOTS_PER_SECOND;
    const isJump = slot < state.slot - MAX_JUMP_SLOTS || slot > most + MAX_JUMP_SLOTS;
    if (isJump && state.slot > 0) {
      state.verifiedAt = undefined;
      await assertUsable(state, signal);
    }
    Object.assign(state, { slot, heardAt: monotonicNow() });
    if (!isFinal) return;
    shownSlot = Math.max(shownSlot, slot);
    state.lag = shownSlot - slot;
    if (isBehindOthers(state)) report(state, IS_BEHIND);
  }

  function succeeded(endpoint: Endpoint, kind: Kind): void {
    const record = of(endpoint).records[kind];
    const { backoff } = record;
    record.failsSince = undefined;
    if (backoff && msSince(backoff.endsAt) > Math.max(backoff.waitMs, FORGIVEN_AFTER_MS))
      record.backoff = undefined;
  }

  /** `error`: what the call threw, or "slow". */
  function failed(endpoint: Endpoint, kind: Kind, error: unknown): void {
    const state = of(endpoint);
    const { failure, retryAfterMs = 0 } = error instanceof RpcError ? error : {};
    if (error === "slow")
      state.lastError = { message: `no answer within ${slowMs} ms`, at: monotonicNow() };
    if (isBehind(error) || failure === "cluster") return;
    if (isRefusal(error)) {
      report(state, REFUSES);
      return;
    }
    // A missing method moves no other reads.
    if (kind === "reads" && isUnsupported(error)) return;
    report(state, FAILS);
    const record = state.records[kind];
    record.failsSince ??= monotonicNow();
    record.backoff = afterFailure(record.backoff, BACKOFF);
    if (retryAfterMs > 0 && kind !== "sends")
      record.notBefore = addMs(monotonicNow(), Math.min(retryAfterMs, BACKOFF.longestMs));
    if (kind === "reads" && msSince(record.failsSince) > OUTAGE_MS) state.verifiedAt = undefined;
  }

  const callEndpoint: CallEndpoint = async (endpoint, method, params, signal) => {
    const state = of(endpoint);
    try {
      await assertUsable(state, signal);
      const result = await callOnce(endpoint, method, params, signal);
      const { context, value } = (result ?? {}) as { context?: { slot: number }; value?: unknown };
      if (!context) return result;
      // All reads of accounts begin with the clock.
      const [account] =
        method === "getMultipleAccounts" ? (value as ({ data: Buffer } | null)[]) : [];
      const clock = decodeClock(account?.data);
      if (clock !== undefined) state.clockOffset = clock - Date.now();
      const isOfNow = OF_NOW.includes(method);
      await hear(state, context.slot, isOfNow, signal);
      const { minContextSlot = 0 } = (params.at(-1) ?? {}) as { minContextSlot?: number };
      const isOld = isOfNow && isBehindOthers(state);
      if (context.slot >= minContextSlot && !isOld) return result;
    } catch (cause) {
      const error = toRpcError(cause, method, endpoint.host);
      // A node that has not reached the required slot reports its own slot.
      if (error.slot !== undefined) await hear(state, error.slot, true, signal);
      throw error;
    }
    throw new RpcError("slot", method, endpoint.host);
  };

  /** Reads the endpoint's state, as a sign that it works. All callers share one read. */
  const readState = ({ endpoint }: State): Promise<void> =>
    joinInFlight(reading, endpoint, async () => {
      try {
        await withDeadline(slowMs, (deadline) =>
          callEndpoint(endpoint, "getMultipleAccounts", READ_CLOCK, deadline),
        );
        succeeded(endpoint, "reads");
      } catch (error) {
        failed(endpoint, "reads", error);
      }
    });

  /** `unknown`: its cluster is not read yet. */
  function describeState(state: State): "ok" | "unknown" | "foreign" | "failing" | "behind" {
    if (isForeign(state)) return "foreign";
    if (KINDS.some((kind) => fails(state, kind))) return "failing";
    if (!isUsable(state)) return "unknown";
    return isBehindOthers(state) ? "behind" : "ok";
  }

  /** The lower, the earlier is the endpoint used. */
  function placeOf(state: State, kind: Kind, minSlot: number): number {
    if (!isUsable(state)) return 4;
    if (fails(state, kind)) return 3;
    if (isBehindOthers(state)) return 2;
    return shownSlot - state.lag < minSlot - SLOTS_PER_SECOND ? 1 : 0;
  }

  return {
    /** An endpoint that takes longer is slow. */
    slowMs,
    /** The newest slot that the endpoints have shown; 0 before. */
    newestSlot: () => shownSlot,
    succeeded,
    failed,
    fails: (endpoint: Endpoint, kind: Kind) => fails(of(endpoint), kind),
    isBehind: (endpoint: Endpoint) => isBehindOthers(of(endpoint)),

    /** For how long no call of this kind has succeeded in time, in ms; 0 after a success. */
    failsForMs(endpoint: Endpoint, kind: Kind): number {
      const { failsSince } = of(endpoint).records[kind];
      return failsSince === undefined ? 0 : msSince(failsSince);
    },

    /** For how long the provider wants no calls of this kind, in ms. */
    refusesForMs: (endpoint: Endpoint, kind: Kind) =>
      Math.max(0, msUntil(of(endpoint).records[kind].notBefore)),

    /** Also those that are foreign, most preferred first. */
    all: needs.endpoints,

    /** The endpoints that may be on our cluster, best first. */
    inOrder: (kind: Kind, minSlot = 0): readonly Endpoint[] =>
      all
        .filter((state) => !isForeign(state))
        .map((state) => ({ state, place: placeOf(state, kind, minSlot) }))
        .sort((a, b) => a.place - b.place)
        .map(({ state }) => state.endpoint),

    /**
     * Calls an endpoint on our cluster. Throws {@link RpcError}: `slot` if the answer is too old,
     * because another endpoint's may be newer, or because the node ignores `minContextSlot`.
     */
    callEndpoint,

    /** Reads, without a caller, what is unknown of endpoints, and whether failing ones work. */
    check(): void {
      for (const state of isOnly ? [] : all) {
        const { verifiedAt, records } = state;
        const isDue = isForeign(state)
          ? msSince(verifiedAt ?? LONG_AGO) > MINUTE_MS
          : fails(state, "reads") || msSince(state.heardAt) > SILENT_MS;
        const { backoff, notBefore } = records.reads;
        if (!isDue || isBackingOff(backoff) || msUntil(notBefore) > 0) continue;
        if (isForeign(state)) state.verifiedAt = undefined;
        void readState(state);
      }
    },

    /** Reads each endpoint's cluster and state, before the first calls. In order of preference. */
    readClusters: () =>
      Promise.all(
        all.map(async (state): Promise<Cluster> => {
          const { endpoint } = state;
          try {
            await verify(state);
            await readState(state);
            return { endpoint, genesisHash: state.genesisHash };
          } catch (cause) {
            failed(endpoint, "reads", cause);
            return { endpoint, error: toRpcError(cause, "getGenesisHash", endpoint.host) };
          }
        }),
      ),

    /** What has been wrong with an endpoint within the last minute, for the operator. */
    problems: (): string[] =>
      [...problems].flatMap(([text, seenAt]) => (msSince(seenAt) <= MINUTE_MS ? text : [])),

    /** For the operator: each endpoint, the most preferred first. */
    describe: () =>
      all.map((state) => ({
        host: state.endpoint.host,
        state: describeState(state),
        slot: state.slot || undefined,
        failing: KINDS.flatMap((kind) => {
          const { failsSince, backoff, notBefore } = state.records[kind];
          if (failsSince === undefined || !fails(state, kind)) return [];
          const until = latest(notBefore, backoff?.endsAt ?? failsSince);
          return { kind, since: toIsoTime(failsSince), backsOffUntil: toIsoTime(until) };
        }),
        calls: state.calls,
        lastError: state.lastError && { ...state.lastError, at: toIsoTime(state.lastError.at) },
      })),

    /** The cluster's genesis hash; undefined until an endpoint has answered. */
    genesisHash: rightHash,
  };
}

import type { Logger } from "../../observability/log.ts";
import { monotonicNow, type MonotonicTime, msSince } from "../../time/monotonic.ts";
import { CLOCK_SYSVAR, decodeClock } from "../slots/clock.ts";
import { createHeightCheck, type HeightCheck } from "../slots/height-check.ts";
import {
  createProgress,
  FAULTS,
  type Fault,
  type Progress,
  type State,
} from "../slots/progress.ts";
import { FINALIZED } from "./commitment.ts";
import { withDeadline } from "./deadline.ts";
import type { CallEndpoint, Endpoint } from "./rpc-endpoint.ts";

interface Track {
  readonly endpoint: Endpoint;
  progress: Progress;
  heights: HeightCheck;
  /** The fault that was logged, and when it was last seen. */
  logged: { readonly fault: Fault; readonly at: MonotonicTime } | undefined;
}

/** For this long, an endpoint's last answer describes its state. */
const KNOWN_MS = 10_000;
/** A fault that has not been seen for this long is over. */
export const OVER_MS = 60_000;

const TEXTS: Readonly<Record<Fault, string>> = {
  moved: "a chain endpoint's slot jumps: the others are used",
  old: "a chain endpoint's state is more than 15 s old by its own clock: the others are used",
  still: "a chain endpoint's slot stands still: the others are used",
};

/** 0 without a fault. */
function rankOf({ progress }: Track): number {
  const fault = progress.fault();
  return fault === undefined ? 0 : FAULTS.indexOf(fault) + 1;
}

const isKnown = ({ progress }: Track) => progress.slot() > 0 && progress.silentMs() <= KNOWN_MS;

/** `fault`: the fault of `track`. */
function isBetter(other: Track, track: Track, fault: Fault): boolean {
  if (rankOf(other) >= rankOf(track)) return false;
  // Until this state is old, an endpoint at the same slot is not better: the whole chain may stand
  // still.
  const { progress } = track;
  return fault !== "still" || other.progress.slot() > progress.slot() || progress.isOld();
}

export type EndpointProgress = ReturnType<typeof createEndpointProgress>;

/**
 * Knows whether each endpoint's state is current. Only an endpoint's own answers decide whether it
 * has a {@link Fault}: an endpoint cannot make others look bad by claiming to be ahead. A fault
 * counts only while a better endpoint answers: if all endpoints look old, this machine's clock is
 * wrong, and all are used. Two that stand still at the same slot have no fault: the whole chain may
 * stand still, and a third that goes on may lie.
 */
export function createEndpointProgress(needs: {
  endpoints: readonly Endpoint[];
  callEndpoint: CallEndpoint;
  rpcTimeoutMs: number;
  /** Whether the endpoint does not answer, or is not used: then it is not better than others. */
  backsOff: (endpoint: Endpoint) => boolean;
  log: Logger;
}) {
  const { endpoints, callEndpoint, rpcTimeoutMs, backsOff, log } = needs;
  const newTrack = () => ({
    progress: createProgress(endpoints.length === 1),
    heights: createHeightCheck(),
  });
  const all = endpoints.map((endpoint): Track => ({ endpoint, ...newTrack(), logged: undefined }));
  const byEndpoint = new Map(all.map((track) => [track.endpoint, track]));
  const of = (endpoint: Endpoint) => byEndpoint.get(endpoint)!;

  const othersOf = (track: Track) =>
    all.filter((other) => other !== track && !backsOff(other.endpoint));

  /** The endpoint's fault. To stand still is none while another one is at the same slot. */
  function faultOf(track: Track): Fault | undefined {
    const { progress } = track;
    const fault = progress.fault();
    const isSame = (other: Track) => isKnown(other) && other.progress.slot() === progress.slot();
    return fault === "still" && othersOf(track).some(isSame) ? undefined : fault;
  }

  /** The endpoints that answer and are better than a faulty one. */
  function betterThan(track: Track): readonly Track[] {
    const fault = faultOf(track);
    if (!fault) return [];
    return othersOf(track).filter((other) => isKnown(other) && isBetter(other, track, fault));
  }

  const isFaulty = (track: Track) => betterThan(track).length > 0;

  /** Logs a fault once, although it may come and go. */
  function logFault(track: Track): void {
    const { endpoint, logged: lastLogged } = track;
    const { host } = endpoint;
    const fault = isFaulty(track) ? faultOf(track) : undefined;
    if (fault) {
      if (fault !== lastLogged?.fault) log.warn({ host }, TEXTS[fault]);
      track.logged = { fault, at: monotonicNow() };
    } else if (lastLogged && msSince(lastLogged.at) > OVER_MS) {
      log.info({ host }, "a chain endpoint's state is as good as the others' again");
      track.logged = undefined;
    }
  }

  return {
    /** Whether the endpoint has a fault, and a better one answers. */
    isFaulty: (endpoint: Endpoint) => isFaulty(of(endpoint)),

    /**
     * Whether the endpoint has a fault, and two better ones answer, or all others that answer are
     * better: one of several must not silence the others.
     */
    isOverruled(endpoint: Endpoint): boolean {
      const track = of(endpoint);
      const { length } = betterThan(track);
      return length > 0 && length >= Math.min(2, othersOf(track).length);
    },

    logFaults(): void {
      all.forEach(logFault);
    },

    /** The text of the logged fault, if it is not over. */
    loggedFault(endpoint: Endpoint): string | undefined {
      const { logged: lastLogged } = of(endpoint);
      return lastLogged && TEXTS[lastLogged.fault];
    },

    /**
     * Records an answer's state. Returns whether the answer may be used: with a fault, an endpoint
     * of unknown state counts as better.
     */
    take(endpoint: Endpoint, state: State): boolean {
      const track = of(endpoint);
      if (!track.progress.take(state)) return false;
      const mayBeWorse = faultOf(track) && !othersOf(track).every(isKnown);
      return !mayBeWorse && !isFaulty(track);
    },

    /**
     * Records a block height that the endpoint reports. Returns false if the endpoint's own earlier
     * heights make it impossible.
     */
    takeHeight: (endpoint: Endpoint, height: number): boolean => of(endpoint).heights.take(height),

    /** Whether the endpoint's own answers allow that it has reached this slot. */
    isReachedAt: (endpoint: Endpoint, slot: number): boolean =>
      of(endpoint).progress.isReached(slot),

    /** Reads the endpoint's state, and records it. */
    async read(endpoint: Endpoint): Promise<void> {
      const { progress } = of(endpoint);
      const params = [[CLOCK_SYSVAR], { ...FINALIZED, encoding: "base64" }];
      const read = (deadline: AbortSignal) =>
        callEndpoint(endpoint, "getMultipleAccounts", params, deadline);
      progress.take(toState(await withDeadline(rpcTimeoutMs, read), params));
    },

    /** The time since the endpoint's last answer, in ms. */
    silentMs: (endpoint: Endpoint) => of(endpoint).progress.silentMs(),

    /** When the endpoint reached its highest slot. */
    advancedAt: (endpoint: Endpoint) => of(endpoint).progress.advancedAt(),

    /** Forgets what endpoints reported. */
    forget(): void {
      for (const track of all) Object.assign(track, newTrack());
    },
  };
}

/** Returns a result's slot and clock. Reads of accounts begin with the clock sysvar. */
export function toState(result: unknown, [keys]: readonly unknown[]): State {
  if (typeof result === "number") return { slot: result };
  const { context, value } = result as { context: { slot: number }; value: unknown };
  const hasClock = Array.isArray(keys) && keys[0] === CLOCK_SYSVAR;
  const clock = hasClock ? (value as ({ data: Buffer } | null)[])[0] : undefined;
  return { slot: context.slot, clock: decodeClock(clock?.data) };
}

import {
  LONG_AGO,
  monotonicNow,
  type MonotonicTime,
  msBetween,
  msSince,
} from "../../time/monotonic.ts";

/**
 * Limits of the observed slots per second. Mainnet's slots took 400 ms until October 2026; now they
 * take 200 ms.
 */
const LEAST_RATE = 1;
export const MOST_RATE = 10;
const RATE_SPAN_MS = 10_000;
/** Nodes behind one load balancer differ in slot, and this process's clock is not the chain's. */
const SLACK_MS = 5_000;
/** An older state is used only while no endpoint is better. */
export const MAX_AGE_MS = 15_000;
const STILL_MS = 5_000;
/**
 * How long an endpoint must stay ahead of, or behind, its expected slot before its new slot is
 * accepted.
 */
const AHEAD_MS = 2_000;
const BEHIND_MS = 10_000;

/** The slot and the time of the chain's state that an answer shows. */
export interface State {
  readonly slot: number;
  /** The chain's time, in ms since 1970; undefined if the answer does not contain it. */
  readonly clock?: number | undefined;
}

/** What can be wrong with an endpoint's state, the least bad first. */
export const FAULTS = ["moved", "old", "still"] as const;
export type Fault = (typeof FAULTS)[number];

interface Place extends State {
  readonly at: MonotonicTime;
}

/** Learns from an endpoint's highest slots how many slots pass in a second. */
function createSlotRate() {
  let perSecond = MOST_RATE;
  /** Where the observation begins. */
  let from: Place | undefined;

  return {
    slotsIn: (ms: number) => (ms / 1_000) * perSecond,

    take(place: Place): void {
      if (!from || place.slot < from.slot) from = place;
      const elapsedMs = msBetween(from.at, place.at);
      if (elapsedMs < RATE_SPAN_MS) return;
      const observedRate = ((place.slot - from.slot) / elapsedMs) * 1_000;
      perSecond = Math.min(Math.max(observedRate, LEAST_RATE), MOST_RATE);
      from = place;
    },

    /** Begins a new observation. The rate stays until its end. */
    restart(): void {
      from = undefined;
    },
  };
}

export type Progress = ReturnType<typeof createProgress>;

/**
 * Tracks one endpoint's slot by its own answers: another endpoint cannot make it look worse. The
 * expected slot is the highest slot plus the slots of the elapsed time, by this process's clock or
 * by a credible chain clock. A slot fits if it is at most 5 s of slots above the expected slot, and
 * at most 15 s of slots below the highest. A lower slot also fits if its answer has a credible
 * clock: then the highest slot was wrong. An answer that does not fit
 * is refused. If later answers continue from it, the endpoint has moved. `isOnly`: the only
 * endpoint.
 */
export function createProgress(isOnly: boolean) {
  /** The highest slot, and when it was reached. */
  let place: Place | undefined;
  let elsewhere: (Place & { readonly since: MonotonicTime }) | undefined;
  let answeredAt = monotonicNow();
  let isOld = false;
  const rate = createSlotRate();

  /** The chain's time in an answer; undefined if it is missing or not credible. */
  const credibleClock = ({ clock = NaN }: State) =>
    Math.abs(Date.now() - clock) <= MAX_AGE_MS ? clock : undefined;

  function fits(answer: Place, from: Place): boolean {
    const clock = credibleClock(answer);
    const clockMs = clock === undefined ? 0 : clock - (from.clock ?? Infinity);
    const elapsedMs = Math.max(msBetween(from.at, answer.at), clockMs);
    const reachableSlot = from.slot + (elapsedMs / 1_000) * MOST_RATE;
    const isBehind = clock === undefined && answer.slot < from.slot - rate.slotsIn(MAX_AGE_MS);
    return !isBehind && answer.slot <= reachableSlot + rate.slotsIn(SLACK_MS);
  }

  function settle(answer: Place): void {
    elsewhere = undefined;
    if (answer.clock !== undefined) isOld = Date.now() - answer.clock > MAX_AGE_MS;
    // A lower slot replaces the highest only if its chain time is later, which never happens on one
    // chain.
    const clock = credibleClock(answer);
    const isLater = clock !== undefined && clock > (place?.clock ?? -Infinity);
    if (place && answer.slot <= place.slot && !(isLater && answer.slot < place.slot)) return;
    rate.take(answer);
    place = answer;
  }

  return {
    /** Records an answer's state, or refuses the state and returns false. */
    take(state: State): boolean {
      const answer = { ...state, at: monotonicNow() };
      answeredAt = answer.at;
      if (place && !fits(answer, place)) {
        const earlier = elsewhere && fits(answer, elsewhere) ? elsewhere : undefined;
        const since = earlier?.since ?? answer.at;
        const isAhead = answer.slot > place.slot;
        const goesOn =
          msBetween(since, answer.at) >= (isAhead ? AHEAD_MS : BEHIND_MS) || (isAhead && isOnly);
        elsewhere = { ...answer, since };
        if (!earlier || !goesOn) return false;
        place = undefined;
        rate.restart();
      }
      settle(answer);
      return true;
    },

    /** Whether the endpoint can have reached `slot` by now, given its own answers. */
    isReached: (slot: number) =>
      !place ||
      [place, elsewhere].some(
        (from) => from && slot <= from.slot + ((msSince(from.at) + MAX_AGE_MS) / 1_000) * MOST_RATE,
      ),

    /** The highest slot; 0 before the first answer. */
    slot: () => place?.slot ?? 0,
    /** When the highest slot was reached. */
    advancedAt: () => place?.at ?? LONG_AGO,
    /** The time since the endpoint's last answer, in ms. */
    silentMs: () => msSince(answeredAt),
    /** Whether the last accepted chain clock was more than 15 s behind this machine's clock. */
    isOld: () => isOld,

    fault(): Fault | undefined {
      if (place && msBetween(place.at, answeredAt) > STILL_MS) return "still";
      if (isOld) return "old";
      return elsewhere && "moved";
    },
  };
}

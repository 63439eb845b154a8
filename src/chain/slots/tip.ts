import { createSteadyClock } from "./steady-clock.ts";

/** Above the chain's rate of 2.5 slots a second. */
const MAX_PER_SECOND = 3;
/** Five seconds' worth: nodes behind one balancer differ, and time is not measured where the chain's is. */
const SLACK = 12;
/** 15 seconds' worth. */
const BEHIND = 38;
/** How long an endpoint must go on where it is, when another one that answers is elsewhere. */
const SUPPORT_MS = 2_000;
/** How long no other endpoint must have answered for one to be alone. */
const ALONE_MS = 3_000;
/** How long all answers must be below the tip until it falls to a source that advances, and to one that stands still. */
const LOST_MS = 8_000;
const LOST_AND_STILL_MS = 60_000;
/** How long an answer supports, or contradicts, those of others. */
const RECENT_MS = 10_000;

/**
 * `current`: it may be used. `behind`: more than 15 s below the tip. `unsupported`: more above the tip than time
 * explains, and nothing supports it yet.
 */
export type Verdict = "current" | "behind" | "unsupported";

/** Answers of one source in which the value grows as it should. */
interface Series {
  readonly answers: number;
  readonly firstAt: number;
  readonly highest: number;
  readonly highestAt: number;
}

interface Source {
  readonly last: number;
  readonly lastAt: number;
  /** Its answers that are not above the tip's reach; and those that are. */
  readonly usual?: Series | undefined;
  readonly ahead?: Series | undefined;
}

export type Tip = ReturnType<typeof createTip>;

/**
 * Knows the chain's newest slot, from what several sources answer. Any of them may be behind, frozen, or wrong.
 *
 * The tip is the newest supported value. A value is supported if it is at most five seconds ahead of what time explains
 * since the tip, or near another source's answer of the last 10 s; if its source says the same a second time, while no
 * other source has answered for 3 s; or if its source goes on there for 2 s, and no other that answers is further. The
 * very first value is the tip until the second answer, which must be near it. A value without support is no reason for
 * an outage, but the answer must be read again. An answer more than 15 s below the tip is behind. After 8 s in which all
 * answers are below the tip, it falls to the furthest source that has advanced meanwhile, and after a minute to any: the
 * tip was wrong, the cluster was rolled back, or nobody who is as far answers. `now` is in ms.
 */
export function createTip(now: () => number = createSteadyClock()) {
  let tip: { readonly value: number; readonly at: number; readonly isFirst?: boolean } | undefined;
  /** Since when all answers are below the tip. */
  let belowSince: number | undefined;
  /** The highest value from which the tip has fallen. */
  let lost = 0;
  const sources = new Map<unknown, Source>();
  const startedAt = now();

  /** Whether time explains that a value is above one that was the newest then. */
  const isReached = (value: number, newest: number, at: number) =>
    value <= newest + SLACK + ((now() - at) * MAX_PER_SECOND) / 1_000;
  const isNear = (value: number, newest: number, at: number) =>
    value >= newest - BEHIND && isReached(value, newest, at);
  const isCredible = (value: number) => !tip || isReached(value, tip.value, tip.at);

  /** A source that is wrong again much later is not supported by its first time. */
  const recentOnly = (series: Series | undefined) =>
    series && now() - series.highestAt <= RECENT_MS ? series : undefined;

  /** The series that `value` continues, or a new one. */
  function grow(series: Series | undefined, value: number): Series {
    const at = now();
    const before = series && isNear(value, series.highest, series.highestAt) ? series : undefined;
    const isHighest = !before || value > before.highest;
    return {
      answers: (before?.answers ?? 0) + 1,
      firstAt: before?.firstAt ?? at,
      highest: isHighest ? value : before.highest,
      highestAt: isHighest ? at : before.highestAt,
    };
  }

  /** The series of the other sources that have answered in the last `ms`. */
  const seriesOfOthers = (source: unknown, ms: number): Series[] =>
    [...sources].flatMap(([other, { lastAt, usual, ahead }]) =>
      other === source || now() - lastAt > ms ? [] : [usual, ahead].filter((series) => series !== undefined),
    );
  const isFurthest = (source: unknown, value: number) =>
    seriesOfOthers(source, RECENT_MS).every(({ answers, highest }) => answers === 1 || highest <= value);

  /** Whether other sources, or the earlier answers of `series`, support its value. */
  function isSupported(source: unknown, value: number, { answers, firstAt, highestAt }: Series): boolean {
    const isNearIt = ({ highest, highestAt }: Series) => isNear(value, highest, highestAt);
    if (seriesOfOthers(source, RECENT_MS).some(isNearIt)) return true;
    if (seriesOfOthers(source, ALONE_MS).length === 0) return answers > 1;
    return isFurthest(source, value) && now() - firstAt >= SUPPORT_MS && highestAt > firstAt;
  }

  function raise(value: number): void {
    if (!tip || value > tip.value) tip = { value, at: now() };
  }

  /** Whether everybody has been below the tip for so long that it falls to this source. */
  function isLost({ firstAt, highestAt }: Series, since: number): boolean {
    const at = now();
    const hasAdvanced = at - firstAt >= LOST_MS && highestAt > since;
    return at - since >= (hasAdvanced ? LOST_MS : LOST_AND_STILL_MS);
  }

  return {
    /** Takes the value of a source's answer. */
    report(source: unknown, value: number): Verdict {
      const at = now();
      if (sources.size === 0 && !tip) tip = { value, at, isFirst: true };
      else if (tip?.isFirst) tip = isNear(value, tip.value, tip.at) ? { ...tip, isFirst: false } : undefined;
      const known = sources.get(source);
      const isAhead = !isCredible(value);
      const series = grow(isAhead ? recentOnly(known?.ahead) : known?.usual, value);
      const answer = { last: value, lastAt: at };
      if ((isAhead || !tip) && !isSupported(source, value, series)) {
        sources.set(source, isAhead ? { ...known, ...answer, ahead: series } : { ...answer, usual: series });
        return "unsupported";
      }
      sources.set(source, { ...answer, usual: series, ahead: isAhead ? undefined : known?.ahead });
      raise(value);
      if (value >= tip!.value) belowSince = undefined;
      else belowSince ??= at;
      if (belowSince !== undefined && isLost(series, belowSince) && isFurthest(source, value)) {
        lost = Math.max(lost, tip!.value);
        tip = { value, at };
        belowSince = undefined;
      }
      return value >= tip!.value - BEHIND ? "current" : "behind";
    },

    /**
     * Takes a value that is supported elsewhere. Ignores one from which the tip has fallen: it may be stored there for
     * longer, and would stop reads again.
     */
    raise(value: number): void {
      if (value > lost || isCredible(value)) raise(value);
    },

    /** Whether a value that is not a source's newest, such as the slot of a transaction, is within the tip's reach. */
    isCredible,

    /** The newest supported value; 0 while there is none. */
    value: () => tip?.value ?? 0,

    /** Whether a source's last answer was `current`; true before the first. */
    isCurrent(source: unknown): boolean {
      const last = sources.get(source)?.last;
      return last === undefined || !tip || (last >= tip.value - BEHIND && isCredible(last));
    },

    /** How long ago a source has answered, in ms. */
    silentMs: (source: unknown): number => now() - (sources.get(source)?.lastAt ?? startedAt),
  };
}

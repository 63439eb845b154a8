import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import type { Transfer } from "./answers.ts";
import type { Problems } from "./problems.ts";
import { overlaps } from "./replica.ts";
import type { System } from "./system.ts";
import type { Moment, State } from "./timeline.ts";

/** A request, and the replica that it was sent to. */
interface Request {
  readonly replica: number;
  readonly start: Moment;
}

/** A problem names this many states from the request's start on. */
const MAX_STATES = 10;
/** Smaller arrivals are left out of histories. */
const MIN_ARRIVED = 100_000n;

export type Truth = ReturnType<typeof createTruth>;

/**
 * Compares each answer about an account's state with the chain's timeline, when the answer arrives.
 * An answer is true if the account had this state at some moment from the request's start, in the
 * finalized view, to its end.
 */
export function createTruth(
  { timeline, stale, frozen, skipped, replicas, activity }: System,
  problems: Problems,
) {
  /**
   * The reported collects of each account: when the report came, and the index of the state after
   * the collect.
   */
  const reported = new Map<string, { readonly at: number; readonly index: number }[]>();
  /**
   * All answers, and the outdated ones from a stale endpoint. These are only counted: a read uses
   * one endpoint, and a replica cannot recognize an endpoint that is slightly behind. But an answer
   * older than a reported collect is a problem, unless the replica could not learn of the collect
   * ("untold"), or did not trust its slot yet.
   */
  const counts = {
    balances: 0,
    staleBalances: 0,
    untoldBalances: 0,
    nothings: 0,
    staleNothings: 0,
    histories: 0,
  };

  /**
   * The index of the oldest state that an answer may show: that after the last collect reported
   * before the request.
   */
  const oldestIndex = (id: string, start: Moment) =>
    Math.max(
      0,
      ...(reported.get(id) ?? []).filter(({ at }) => at < start.at).map(({ index }) => index),
    );

  /**
   * When an answer was last true: during the request, before (old), before a reported collect
   * (outdated), or never.
   */
  function judge(id: string, start: Moment, fits: (state: State) => boolean) {
    const states = timeline.statesOf(id);
    const index = states.findLastIndex(fits);
    if (index >= timeline.indexAt(id, start)) return "true";
    if (index >= oldestIndex(id, start)) return "old";
    return index >= 0 ? "outdated" : "never";
  }

  /**
   * Whether a replica may have missed the last collect reported before a request, or not have
   * trusted its slot.
   */
  function isUntold(id: string, { replica, start }: Request): boolean {
    const from = timeline.statesOf(id)[oldestIndex(id, start)]!.at;
    return [frozen, skipped, replicas[replica]!.withoutRedis].some((away) =>
      overlaps(away, from, Date.now()),
    );
  }

  const describe = (id: string, start: Moment, mints: readonly string[]) => {
    const from = timeline.indexAt(id, start);
    const states = timeline.statesOf(id).slice(from, from + MAX_STATES);
    const shown = states.map(
      (state) => `${timeline.feesOf(state, mints)} + ${state.pda} from ${state.at}`,
    );
    return `requested at ${start.at}, answered at ${Date.now()}, the chain had ${shown.join(", ")}`;
  };

  const wasStale = (start: Moment) => overlaps(stale, start.at, Date.now());

  return {
    counts: counts as Readonly<typeof counts>,

    /** Call this when a caller receives the success of a collect. */
    reported(id: string, signature: string): void {
      const index = timeline.statesOf(id).findIndex((state) => state.signature === signature);
      const list = reported.get(id) ?? [];
      reported.set(id, list);
      list.push({ at: Date.now(), index });
    },

    /**
     * Checks a balance that includes the fees of these mints. `fits` returns whether it shows these
     * lamports.
     */
    checkBalance(
      { id, handle }: SandboxAccount,
      request: Request,
      mints: readonly string[],
      fits: (vault: bigint, pda: bigint) => boolean,
      shown: string,
    ) {
      const { start, replica } = request;
      counts.balances++;
      activity.lastBalanceAt = Date.now();
      const verdict = judge(id, start, (state) => fits(timeline.feesOf(state, mints), state.pda));
      const detail = `${handle} with ${mints.length} coins has ${shown} at replica ${replica}; ${describe(id, start, mints)}`;
      if (verdict === "true") return;
      if (verdict === "never") problems.add("a balance that never existed", detail);
      else if (verdict === "outdated" && wasStale(start) && isUntold(id, request))
        counts.untoldBalances++;
      else if (verdict === "outdated")
        problems.add("a balance from before a reported collect", detail);
      else if (wasStale(start)) counts.staleBalances++;
      else problems.add("a balance from before the request", detail);
    },

    /** Checks the answer NOTHING_TO_COLLECT to a collect with these mints. */
    checkNothing(
      { id, handle }: SandboxAccount,
      request: Request,
      mints: readonly string[],
      message: string,
    ) {
      const { start, replica } = request;
      counts.nothings++;
      const verdict = judge(id, start, (state) => timeline.isNothing(state, mints));
      const detail = `${handle} with ${mints.length} coins at replica ${replica}: ${message} ${verdict}; ${describe(id, start, mints)}`;
      if (verdict === "true") return;
      const isExcused = verdict === "old" || (verdict === "outdated" && isUntold(id, request));
      if (isExcused && wasStale(start)) counts.staleNothings++;
      else problems.add("nothing to collect, although fees waited", detail);
    },

    /** Checks that an account's newest transfers are all true, and that none is missing. */
    checkHistory({ id, handle }: SandboxAccount, request: Request, transfers: readonly Transfer[]) {
      const { start, replica } = request;
      const states = timeline.statesOf(id);
      const all = states.flatMap(({ pda, signature }, i) => {
        const arrived = pda - (states[i - 1]?.pda ?? pda);
        if (arrived < MIN_ARRIVED) return [];
        return { text: `COLLECTED ${arrived} ${signature}`, signature, index: i };
      });
      const shown = transfers.map((each) => `${each.kind} ${each.lamports} ${each.signature}`);
      const last = all.findLastIndex(({ signature }) => signature === transfers[0]?.signature);
      const expected = all
        .slice(Math.max(0, last + 1 - shown.length), last + 1)
        .reverse()
        .map(({ text }) => text);
      /** The history is that of all states before the next transfer. */
      const until = all[last + 1]?.index ?? Infinity;
      const wrong = expected.findIndex((text, i) => text !== shown[i]);
      const detail = `${handle} at ${start.at} at replica ${replica}: ${shown.join()}; expected at ${wrong}: ${expected[wrong]}`;
      if (wrong >= 0 || shown.length > last + 1) problems.add("a history that is not true", detail);
      else if (until <= timeline.indexAt(id, start) && !wasStale(start))
        problems.add("a history from before the request", detail);
      else counts.histories++;
    },

    /** Whether an account and its coins have nothing to collect now. */
    isNothing: ({ id, coins }: SandboxAccount) =>
      timeline.isNothing(
        timeline.statesOf(id).at(-1)!,
        coins.map(({ mint }) => mint),
      ),
  };
}

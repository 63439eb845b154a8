import type { Caller } from "../fairness/caller.ts";
import { inFairOrder } from "../fairness/fair-order.ts";
import { reasonOf, toError } from "../observability/thrown.ts";
import { isHandleKey, type AccountKey, type SocialAccount } from "./account.ts";
import { MAX_USERS_PER_CALL, type SocialClient } from "./api-client.ts";
import { addMs, monotonicNow, type MonotonicTime, msUntil } from "../time/monotonic.ts";
import { createDispatchClock } from "../upstream/dispatch-clock.ts";

type Answer = SocialAccount | Error;

/**
 * When `signal` aborts, a load resolves to the abort reason, or, if the quota held it too long, to
 * `refuse()`.
 */
export interface Queuer extends Caller {
  /** After this time accounts are refused instead of requested. */
  readonly sendBefore: MonotonicTime;
}

/**
 * Called once for a load: with the answer if this load caused the call to the network, else
 * without.
 */
export type OnEnd = (answer?: Answer) => void;

/** A key that waits or is in flight. */
interface Entry extends PromiseWithResolvers<Answer> {
  readonly key: AccountKey;
  /** When the key is sent, if no earlier call takes it. */
  readonly dueAt: MonotonicTime;
  readonly callers: Queuer[];
  readonly onEnd: OnEnd | undefined;
}

/**
 * How long a key waits for its call to fill while calls are in flight: long, because calls are few
 * (300 in 15 minutes).
 */
const MAX_WAIT_MS = 150;
/** If a call takes a second, four at once use up 300 calls in 75 seconds. */
const MAX_CALLS = 4;

/**
 * Merges the keys of concurrent callers into few calls, at most `socialConcurrency` in flight.
 * While no call is in flight, a key is sent at the end of the event-loop turn, with the other keys
 * of that turn. Otherwise keys gather until they fill a call or the first has waited for 150 ms.
 * Every call also waits for the call quota. Callers who load a pending key share its answer. If
 * they have all left, a new load requests the key again, because the call in flight is probably
 * failing.
 *
 * If more keys wait than fit into a call, the call takes equally many of each address block. Beyond
 * `socialQueueMax`, the queue refuses the newest keys of the blocks with the most keys. Calls for
 * handles and for ids take turns.
 */
export function createLookupQueue(needs: {
  ask: (keys: readonly AccountKey[]) => Promise<ReadonlyMap<AccountKey, Answer>>;
  /** Resolves when the next call may be made; undefined if that is now. */
  turn: SocialClient["turn"];
  socialConcurrency?: number | undefined;
  socialQueueMax: number;
  /** The error of a key that does not fit into the queue, or is not sent in time. */
  refuse: () => Error;
}) {
  const { ask, socialConcurrency = MAX_CALLS, socialQueueMax, refuse } = needs;
  const waiting = new Map<AccountKey, Entry>();
  const inFlight = new Map<AccountKey, Entry>();
  const clock = createDispatchClock(send);
  /** Whether the next call has its turn in the call quota. */
  let turn: "needed" | "awaited" | "here" = "needed";
  let lastWereHandles: boolean | undefined;

  function pending(key: AccountKey): Entry | undefined {
    const sentEntry = inFlight.get(key);
    return waiting.get(key) ?? (sentEntry && isWanted(sentEntry) ? sentEntry : undefined);
  }

  function add(key: AccountKey, onEnd: OnEnd | undefined): Entry {
    const isFirst = clock.calls() === 0 && waiting.size === 0;
    const dueAt = addMs(monotonicNow(), isFirst ? 0 : MAX_WAIT_MS);
    const entry = { ...Promise.withResolvers<Answer>(), key, dueAt, callers: [], onEnd };
    waiting.set(key, entry);
    clock.wake();
    return entry;
  }

  function load(key: AccountKey, caller: Queuer, onEnd?: OnEnd): Promise<Answer> {
    const { signal, sendBefore } = caller;
    const joinedEntry = pending(key);
    if (joinedEntry || signal.aborted) onEnd?.();
    if (signal.aborted) return Promise.resolve(reasonOf(signal));
    const entry = joinedEntry ?? add(key, onEnd);
    entry.callers.push(caller);
    return new Promise((resolve) => {
      const leave = () => {
        const isWaiting = waiting.get(key) === entry;
        const isLate = isWaiting && turn === "awaited" && monotonicNow() > sendBefore;
        resolve(isLate ? refuse() : reasonOf(signal));
        // Free the entry's place in the queue at once.
        if (isWaiting && !isWanted(entry)) end(entry, reasonOf(signal));
      };
      signal.addEventListener("abort", leave, { once: true });
      void entry.promise.then((answer) => {
        signal.removeEventListener("abort", leave);
        resolve(answer);
      });
    });
  }

  function send(): number | undefined {
    while (mayCall()) {
      const dueMs = millisecondsUntilDue();
      if (dueMs > 0) return dueMs;
      if (hasTurn()) void sendOne();
    }
    if (waiting.size > socialQueueMax)
      for (const entry of inFairOrder([...waiting.values()], blocksOf).slice(socialQueueMax))
        end(entry, refuse());
    return undefined;
  }

  const mayCall = () => waiting.size > 0 && clock.calls() < socialConcurrency && turn !== "awaited";

  function millisecondsUntilDue(): number {
    if (waiting.size >= MAX_USERS_PER_CALL || waiting.size > socialQueueMax) return 0;
    const [oldest] = waiting.values();
    return oldest ? Math.max(0, msUntil(oldest.dueAt)) : 0;
  }

  /** Whether the next call may be made. If not, calls `send` when its turn comes. */
  function hasTurn(): boolean {
    if (turn === "needed") {
      const wait = needs.turn();
      turn = wait ? "awaited" : "here";
      void wait?.then(() => {
        turn = "here";
        clock.wake();
      });
    }
    return turn === "here";
  }

  async function sendOne(): Promise<void> {
    const batch = chooseFairly();
    // Keep the turn for the next key.
    if (batch.length === 0) return;
    turn = "needed";
    for (const entry of batch) {
      waiting.delete(entry.key);
      inFlight.set(entry.key, entry);
    }
    const answers = await clock.call(() => ask(batch.map(({ key }) => key))).catch(toError);
    for (const entry of batch) {
      const none = () => new Error(`no answer for ${entry.key}`);
      end(entry, answers instanceof Error ? answers : (answers.get(entry.key) ?? none()));
    }
  }

  /** Chooses the keys of the next call. Refuses keys that are late. */
  function chooseFairly(): Entry[] {
    const now = monotonicNow();
    for (const entry of waiting.values())
      if (entry.callers.every(({ sendBefore }) => sendBefore < now)) end(entry, refuse());
    const inOrder = inFairOrder([...waiting.values()], blocksOf);
    const other = inOrder.find(({ key }) => isHandleKey(key) !== lastWereHandles);
    if (other) lastWereHandles = isHandleKey(other.key);
    return inOrder
      .filter(({ key }) => isHandleKey(key) === lastWereHandles)
      .slice(0, MAX_USERS_PER_CALL);
  }

  function end(entry: Entry, answer: Answer): void {
    const { key } = entry;
    const isWaiting = waiting.get(key) === entry;
    if (isWaiting) waiting.delete(key);
    else if (inFlight.get(key) === entry) inFlight.delete(key);
    entry.onEnd?.(isWaiting ? undefined : answer);
    entry.resolve(answer);
  }

  return {
    /** Resolves to the account of the key, or to an Error. */
    load,
    /** Whether a load of the key would join the call of an earlier load. */
    isPending: (key: AccountKey): boolean => pending(key) !== undefined,
    /** The number of keys that wait for a call. */
    waiting: () => waiting.size,
  };
}

const isWanted = ({ callers }: Entry) => callers.some(({ signal }) => !signal.aborted);
const blocksOf = ({ callers }: Entry) => new Set(callers.map(({ addressBlock }) => addressBlock));

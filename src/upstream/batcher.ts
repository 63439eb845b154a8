import type { BatchMetrics } from "./batch-metrics.ts";
import { inFairOrder } from "../fairness/fair-order.ts";

type Answer<Value> = Value | Error;

/** Who loads keys. All but the signal is for `scarce` calls. */
export interface Load<Key, Value> {
  /** When it aborts, the load ends: keys without an answer get its reason. */
  readonly signal?: AbortSignal | undefined;
  /** That of the caller. */
  readonly addressBlock?: string;
  /** After this time keys are refused instead of sent. In `performance.now()` time; default: never. */
  readonly sendBefore?: number;
  /**
   * Called once for each key: with the answer if this load caused the call, even if the caller has left; without one if
   * it joined another load, or the key was not sent.
   */
  readonly onEnd?: (key: Key, answer?: Answer<Value>) => void;
}

/** How to use an upstream that limits calls. */
export interface Scarce<Key> {
  /** Resolves when the next call may be made; undefined if that is now. */
  readonly turn: () => Promise<unknown> | undefined;
  /** Keys of different groups never share a call. Groups take turns. */
  readonly groupOf: (key: Key) => unknown;
  readonly maxWaiting: number;
  /** The error of a key that does not fit into the queue, or is not sent in time. */
  readonly refuse: () => Error;
}

/** A key that waits or is in flight. */
interface Entry<Key, Value> {
  readonly key: Key;
  readonly id: string;
  /** When it is sent, unless a call is made earlier. Times are in `performance.now()` time. */
  readonly dueAt: number;
  /** The latest of its loads. */
  sendBefore: number;
  isAnswered: boolean;
  readonly waiters: ((answer: Answer<Value>) => void)[];
  /** The waiters that have not left. */
  callers: number;
  blocks?: Set<string>;
  readonly onEnd: Load<Key, Value>["onEnd"];
}

/**
 * Merges the keys that concurrent callers load into few calls. While no call is in flight, a key is sent at the end of
 * the event-loop turn, with the other keys of the turn: a lone key does not wait. While calls are in flight, keys
 * gather: the more callers there are, the more keys a call takes. They are sent when they fill a call, when the first
 * has waited `maxWaitMs`, or when the last call ends. At most `maxCalls` calls are in flight. All who load a waiting
 * key get its answer.
 *
 * `scarce` calls also wait for their turn, and then take the keys that have gathered. To save calls, keys gather for
 * `maxWaitMs` even if the last call ends earlier, and all who load a key in flight get its answer, unless all earlier
 * ones have left: its call is probably failing. Address blocks get equal parts: if more keys wait than fit into a
 * call, it takes equally many of each block; if more than `maxWaiting` wait, the newest of the blocks with the most
 * are refused.
 */
export function createBatcher<Key, Value>(options: {
  /**
   * Calls `answer` once for each key, by its index. Those who wait for a key get its answer at once. When it ends, keys
   * without an answer get its rejection.
   */
  ask: (keys: readonly Key[], answer: (index: number, answer: Answer<Value>) => void) => Promise<void>;
  /** Keys are equal if they have the same id. */
  idOf: (key: Key) => string;
  maxKeys: number;
  maxCalls: number;
  maxWaitMs: number;
  scarce?: Scarce<Key>;
  metrics?: BatchMetrics | undefined;
}) {
  const { ask, idOf, maxKeys, maxCalls, maxWaitMs, scarce, metrics } = options;
  const maxWaiting = scarce?.maxWaiting ?? Infinity;
  let waiting = new Map<string, Entry<Key, Value>>();
  const inFlight = new Map<string, Entry<Key, Value>>();
  let calls = 0;
  let timer: NodeJS.Timeout | undefined;
  /** The turn of the next call. */
  let turn: "needed" | "awaited" | "here" = "needed";
  let lastGroup: unknown;
  let endOfTurn: NodeJS.Immediate | undefined;
  metrics?.watch(() => waiting.size);

  /** Resolves to the value of each key, in order, or to the Error that `ask` answered or threw. */
  function load(keys: readonly Key[], options: Load<Key, Value> = {}): Promise<Answer<Value>[]> {
    const { signal, sendBefore = Infinity, onEnd } = options;
    return new Promise((resolve) => {
      const answers = new Array<Answer<Value>>(keys.length);
      let missing = keys.length;
      if (missing === 0 || signal?.aborted) {
        for (const key of keys) onEnd?.(key);
        resolve(answers.fill(signal?.reason as Error));
        return;
      }
      const entries = keys.map((key, i) => {
        const entry = join(key, options);
        entry.waiters.push((answer) => {
          answers[i] = answer;
          if (--missing > 0) return;
          signal?.removeEventListener("abort", leave);
          resolve(answers);
        });
        return entry;
      });
      const leave = () => {
        const reason = signal!.reason as Error;
        entries.forEach((entry, i) => {
          const isWaiting = waiting.get(entry.id) === entry;
          const isLate = isWaiting && turn === "awaited" && performance.now() > sendBefore;
          answers[i] ??= isLate ? scarce!.refuse() : reason;
          entry.callers--;
          if (!isWaiting || entry.callers > 0) return;
          waiting.delete(entry.id);
          entry.onEnd?.(entry.key);
        });
        resolve([...answers]);
      };
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  function join(key: Key, { addressBlock, sendBefore = Infinity, onEnd }: Load<Key, Value>) {
    let entry = pending(key);
    if (entry) onEnd?.(key);
    else {
      const isAlone = calls === 0 && waiting.size === 0;
      const dueAt = performance.now() + (isAlone ? 0 : maxWaitMs);
      entry = { key, id: idOf(key), dueAt, sendBefore: 0, isAnswered: false, waiters: [], callers: 0, onEnd };
      waiting.set(entry.id, entry);
      endOfTurn ??= setImmediate(send);
    }
    entry.callers++;
    entry.sendBefore = Math.max(entry.sendBefore, sendBefore);
    if (addressBlock !== undefined) (entry.blocks ??= new Set()).add(addressBlock);
    return entry;
  }

  function pending(key: Key): Entry<Key, Value> | undefined {
    const id = idOf(key);
    const sent = inFlight.get(id);
    return waiting.get(id) ?? (sent && sent.callers > 0 ? sent : undefined);
  }

  function send(): void {
    endOfTurn = undefined;
    while (waiting.size > 0 && calls < maxCalls && millisecondsUntilDue() <= 0 && hasTurn()) void sendOne();
    if (scarce && waiting.size > maxWaiting)
      for (const entry of inFairOrder([...waiting.values()], blocksOf).slice(maxWaiting))
        drop(entry, scarce.refuse());
    if (waiting.size > 0 && calls < maxCalls && turn !== "awaited")
      // A timer that is already set is never too late, because all keys wait equally long.
      timer ??= setTimeout(
        () => {
          timer = undefined;
          send();
        },
        Math.max(0, millisecondsUntilDue()),
      );
  }

  function millisecondsUntilDue(): number {
    const isFull = waiting.size >= maxKeys || waiting.size > maxWaiting;
    if (isFull || (calls === 0 && !scarce)) return 0;
    const [oldest] = waiting.values();
    return oldest!.dueAt - performance.now();
  }

  /** Whether the next call may be made. If not, sends when its turn comes. */
  function hasTurn(): boolean {
    if (turn === "needed") {
      const wait = scarce?.turn();
      turn = wait ? "awaited" : "here";
      void wait?.then(() => {
        turn = "here";
        send();
      });
    }
    return turn === "here";
  }

  async function sendOne(): Promise<void> {
    const batch = scarce ? chooseFairly(scarce) : [...waiting.values().take(maxKeys)];
    // The next key then uses the turn.
    if (batch.length === 0) return;
    turn = "needed";
    calls++;
    metrics?.sent(batch.length);
    // A map that is emptied and filled again keeps its old entries alive until V8 rehashes it.
    if (batch.length === waiting.size) waiting = new Map();
    else for (const { id } of batch) waiting.delete(id);
    if (scarce) for (const entry of batch) inFlight.set(entry.id, entry);
    const keys = batch.map(({ key }) => key);
    const error = await ask(keys, (i, value) => {
      answer(batch[i]!, value);
    }).catch((error: unknown) => error as Error);
    calls--;
    for (const entry of batch)
      if (!entry.isAnswered) answer(entry, error ?? new Error(`no answer for ${entry.id}`));
    endOfTurn ??= setImmediate(send);
  }

  function answer(entry: Entry<Key, Value>, value: Answer<Value>): void {
    entry.isAnswered = true;
    if (inFlight.get(entry.id) === entry) inFlight.delete(entry.id);
    entry.onEnd?.(entry.key, value);
    for (const waiter of entry.waiters) waiter(value);
  }

  /** The keys of the next call. Refuses those that are late. */
  function chooseFairly({ groupOf, refuse }: Scarce<Key>): Entry<Key, Value>[] {
    const now = performance.now();
    for (const entry of waiting.values()) if (entry.sendBefore < now) drop(entry, refuse());
    const inOrder = inFairOrder([...waiting.values()], blocksOf);
    const other = inOrder.find(({ key }) => groupOf(key) !== lastGroup);
    if (other) lastGroup = groupOf(other.key);
    return inOrder.filter(({ key }) => groupOf(key) === lastGroup).slice(0, maxKeys);
  }

  /** Ends the loads of a key that is not sent. */
  function drop(entry: Entry<Key, Value>, reason: Error): void {
    waiting.delete(entry.id);
    entry.onEnd?.(entry.key);
    for (const waiter of entry.waiters) waiter(reason);
  }

  return {
    load,
    /** Whether a load of the key would share the call of an earlier load. */
    isPending: (key: Key): boolean => pending(key) !== undefined,
  };
}

const blocksOf = ({ blocks }: { readonly blocks?: Set<string> }) => blocks ?? [];

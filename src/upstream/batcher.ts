import type { BatchMetrics } from "./batch-metrics.ts";
import { inFairOrder } from "./fair-order.ts";

type Answer<Value> = Value | Error;

/** Who loads a key, and until when. */
export interface Load<Value> {
  /** The caller's address block. Blocks share calls and the queue equally. Absent: first come, first served. */
  readonly addressBlock?: string;
  /** When it aborts, the load ends with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** After this time the key is refused instead of sent. In `performance.now()` time; default: never. */
  readonly sendBefore?: number;
  /**
   * Called once: with the answer if this load caused the call, even if the caller has left; without one if it joined
   * another load, or the key was not sent.
   */
  readonly onEnd?: (answer?: Answer<Value>) => void;
}

/** A key that waits or is in flight. */
interface Entry<Key, Value> {
  readonly key: Key;
  readonly id: string;
  /** When it is due, unless its call is sent earlier. Times are in `performance.now()` time. */
  readonly dueAt: number;
  /** The latest of its loads. */
  sendBefore: number;
  readonly waiters: ((answer: Answer<Value>) => void)[];
  blocks?: Set<string>;
  readonly onEnd: Load<Value>["onEnd"];
}

/**
 * Merges the keys that concurrent callers load into few calls. While no call is in flight, a key is sent at the end of
 * the event-loop turn, with the other keys of the turn: a lone key does not wait. While calls are in flight, keys
 * gather: the more callers there are, the more keys a call takes. They are sent when they fill a call, when the first
 * has waited `maxWaitMs`, or when the last call ends. At most `maxCalls` calls are in flight.
 *
 * All who load a waiting key get its answer. If more keys wait than fit into a call, it takes equally many of each
 * address block. If more than `maxWaiting` wait, the newest of the blocks with the most are refused.
 *
 * With `turn`, calls are scarce. Each waits for the promise that `turn` returns, and takes the keys that have gathered
 * by then. Keys gather for `maxWaitMs` even if the last call ends earlier. All who load a key in flight get its answer
 * too, unless all earlier ones have left: its call is probably failing.
 */
export function createBatcher<Key, Value>(options: {
  /** Returns the answer for each key, in order. */
  ask: (keys: readonly Key[]) => Promise<readonly (Answer<Value> | undefined)[]>;
  /** Keys are equal if they have the same id. */
  idOf: (key: Key) => string;
  maxKeys: number;
  maxCalls: number;
  maxWaitMs: number;
  turn?: () => Promise<unknown> | undefined;
  maxWaiting?: number;
  /** The error of a key that does not fit into the queue, or is not sent in time. */
  refuse?: () => Error;
  /** Keys of different groups never share a call. Groups take turns. */
  groupOf?: (key: Key) => unknown;
  metrics?: BatchMetrics | undefined;
}) {
  const { ask, idOf, maxKeys, maxCalls, maxWaitMs, turn, maxWaiting = Infinity, metrics } = options;
  const { refuse = () => new Error("the key was refused"), groupOf = () => undefined } = options;
  let waiting = new Map<string, Entry<Key, Value>>();
  const inFlight = new Map<string, Entry<Key, Value>>();
  let calls = 0;
  let isScheduled = false;
  let timer: NodeJS.Timeout | undefined;
  /** The turn of the next call. */
  let nextTurn: "needed" | "awaited" | "here" = "needed";
  let lastGroup: unknown;
  metrics?.watch(() => waiting.size);

  /** Resolves to the value of a key, or to the Error that `ask` returned or threw. */
  function load(key: Key, request: Load<Value> = {}): Promise<Answer<Value>> {
    const { addressBlock, signal, sendBefore = Infinity, onEnd } = request;
    return new Promise((resolve) => {
      if (signal?.aborted) {
        onEnd?.();
        resolve(signal.reason as Error);
        return;
      }
      const earlier = pending(key);
      if (earlier) onEnd?.();
      const entry = earlier ?? add(key, onEnd);
      entry.sendBefore = Math.max(entry.sendBefore, sendBefore);
      if (addressBlock !== undefined) (entry.blocks ??= new Set()).add(addressBlock);
      const leave = () => {
        entry.waiters.splice(entry.waiters.indexOf(waiter), 1);
        const reason = signal!.reason as Error;
        const isWaiting = waiting.get(entry.id) === entry;
        const isLate = isWaiting && nextTurn === "awaited" && performance.now() > sendBefore;
        resolve(isLate ? refuse() : reason);
        if (isWaiting && entry.waiters.length === 0) drop(entry, reason);
      };
      const waiter = (answer: Answer<Value>) => {
        signal?.removeEventListener("abort", leave);
        resolve(answer);
      };
      entry.waiters.push(waiter);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  function pending(key: Key): Entry<Key, Value> | undefined {
    const id = idOf(key);
    const sent = inFlight.get(id);
    return waiting.get(id) ?? (sent && sent.waiters.length > 0 ? sent : undefined);
  }

  function add(key: Key, onEnd: Load<Value>["onEnd"]): Entry<Key, Value> {
    const isAlone = calls === 0 && waiting.size === 0;
    const dueAt = performance.now() + (isAlone ? 0 : maxWaitMs);
    const entry: Entry<Key, Value> = { key, id: idOf(key), dueAt, sendBefore: 0, waiters: [], onEnd };
    waiting.set(entry.id, entry);
    sendAtEndOfTurn();
    return entry;
  }

  function sendAtEndOfTurn(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      send();
    });
  }

  function send(): void {
    while (waiting.size > 0 && calls < maxCalls && millisecondsUntilDue() <= 0 && hasTurn()) void sendOne();
    if (waiting.size > maxWaiting)
      for (const entry of inFairOrder([...waiting.values()], blocksOf).slice(maxWaiting))
        drop(entry, refuse());
    if (waiting.size > 0 && calls < maxCalls && nextTurn !== "awaited")
      // A timer that is already set is never too late, because all keys wait equally long.
      timer ??= setTimeout(wake, Math.max(0, millisecondsUntilDue()));
  }

  function wake(): void {
    timer = undefined;
    send();
  }

  function millisecondsUntilDue(): number {
    const isFull = waiting.size >= maxKeys || waiting.size > maxWaiting;
    if (isFull || (calls === 0 && !turn)) return 0;
    const [oldest] = waiting.values();
    return oldest!.dueAt - performance.now();
  }

  /** Whether the next call has its turn. If not, sends when it comes. */
  function hasTurn(): boolean {
    if (nextTurn === "needed") {
      const wait = turn?.();
      nextTurn = wait ? "awaited" : "here";
      void wait?.then(() => {
        nextTurn = "here";
        send();
      });
    }
    return nextTurn === "here";
  }

  async function sendOne(): Promise<void> {
    const batch = takeBatch();
    // The next key then uses the turn.
    if (batch.length === 0) return;
    nextTurn = "needed";
    calls++;
    metrics?.sent(batch.length);
    if (turn) for (const entry of batch) inFlight.set(entry.id, entry);
    const answers = await ask(batch.map(({ key }) => key)).catch((error: unknown) => error as Error);
    calls--;
    batch.forEach((entry, i) => {
      if (inFlight.get(entry.id) === entry) inFlight.delete(entry.id);
      const answer =
        answers instanceof Error ? answers : (answers[i] ?? new Error(`no answer for ${entry.id}`));
      entry.onEnd?.(answer);
      for (const waiter of entry.waiters) waiter(answer);
    });
    sendAtEndOfTurn();
  }

  function takeBatch(): Entry<Key, Value>[] {
    const now = performance.now();
    for (const entry of waiting.values()) if (entry.sendBefore < now) drop(entry, refuse());
    let batch = [...waiting.values()];
    if (batch.length > maxKeys) batch = inFairOrder(batch, blocksOf);
    const other = batch.find(({ key }) => groupOf(key) !== lastGroup);
    if (other) lastGroup = groupOf(other.key);
    batch = batch.filter(({ key }) => groupOf(key) === lastGroup).slice(0, maxKeys);
    // A map that is emptied and filled again keeps its old entries alive until V8 rehashes it.
    if (batch.length === waiting.size) waiting = new Map();
    else for (const { id } of batch) waiting.delete(id);
    return batch;
  }

  /** Ends the loads of a key that is not sent. */
  function drop(entry: Entry<Key, Value>, reason: Error): void {
    waiting.delete(entry.id);
    entry.onEnd?.();
    for (const waiter of entry.waiters) waiter(reason);
  }

  return {
    load,
    /** Whether a load of the key would share the call of an earlier load. */
    isPending: (key: Key): boolean => pending(key) !== undefined,
  };
}

const blocksOf = ({ blocks }: { readonly blocks?: Set<string> }) => blocks;

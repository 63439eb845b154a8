import type { BatchMetrics } from "./batch-metrics.ts";
import { inFairOrder } from "./fair-order.ts";
import type { LoadRequest } from "./load-request.ts";

/** Merges the keys that many callers request into few calls. */
export interface Batcher<Value> {
  /**
   * Resolves to the values of the keys, in order. A failed key has the Error that `ask` returned or threw, or that
   * of `refuse`. When `signal` aborts, missing values become its reason, or `refuse(reason)` for keys that wait
   * for `turn`, and waiting keys without another caller are dropped.
   */
  load(
    keys: readonly string[],
    signal?: AbortSignal,
    request?: LoadRequest<Value>,
  ): Promise<(Value | Error)[]>;
  /** Whether a load of the key would share the call of an earlier load. */
  isPending(key: string): boolean;
}

interface Entry<Value> {
  readonly waiters: ((answer: Value | Error) => void)[];
  /** When to send it at the latest, if fewer than `maxCalls` calls are in flight. In `performance.now()` time. */
  readonly sendAt: number;
  sendBefore: number;
  /** Callers who have not left, as far as signals tell. */
  callers: number;
  /** The `left` of each waiter; shorter than `waiters` if one has none. */
  readonly left: (() => Error | undefined)[];
  names?: Set<string>;
  readonly onEnd: LoadRequest<Value>["onEnd"];
}

/**
 * A batcher for the whole process. A lone request must not wait, and batches must be largest under load.
 * So a key that arrives while no call is in flight is sent at the end of this turn of the event loop, together with
 * all keys of the turn. Keys that arrive while calls are in flight gather: a batch is sent when it is full, when the
 * queue overflows, when its oldest key has waited `maxWaitMs`, or, with `sendAfterCalls`, as soon as no call is in
 * flight. At most `maxCalls` calls are in flight. With `turn`, a call also waits for the promise that `turn` returns,
 * and takes the keys that have gathered by then.
 *
 * When more keys wait than fit, each caller gets an equal number into the call, and into the queue of `maxWaiting`
 * keys; keys that do not fit into the queue are refused.
 *
 * `ask` returns a value or an Error for each key. With `joinInFlight`, a key in flight is not requested again
 * while one of its callers still waits. Keys with different `groupOf` never share a call; groups alternate.
 */
export function createBatcher<Value>(options: {
  ask: (keys: readonly string[]) => Promise<ReadonlyMap<string, Value | Error>>;
  maxKeys: number;
  maxCalls: number;
  maxWaitMs: number;
  sendAfterCalls?: boolean;
  maxWaiting?: number;
  /** The error of a key that does not fit, is too late, or whose caller has left (`reason`) before its turn. */
  refuse?: (reason?: Error) => Error;
  joinInFlight?: boolean;
  groupOf?: (key: string) => unknown;
  turn?: () => Promise<unknown> | undefined;
  metrics?: BatchMetrics | undefined;
}): Batcher<Value> {
  const { ask, maxKeys, maxCalls, maxWaitMs, maxWaiting = Infinity, groupOf } = options;
  const { sendAfterCalls = false, joinInFlight = false } = options;
  let waiting = new Map<string, Entry<Value>>();
  const inFlight = new Map<string, Entry<Value>>();
  let calls = 0;
  let isScheduled = false;
  let timer: NodeJS.Timeout | undefined;
  /** The next call's turn: not requested yet, awaited, or here and unused. */
  let turn: "needed" | "awaited" | "taken" = "needed";
  let lastGroup: unknown;
  options.metrics?.watch(() => waiting.size);

  function load(
    keys: readonly string[],
    signal?: AbortSignal,
    request: LoadRequest<Value> = {},
  ): Promise<(Value | Error)[]> {
    return new Promise((resolve) => {
      const answers = new Array<Value | Error>(keys.length);
      let missing = keys.length;
      if (missing === 0 || signal?.aborted) {
        keys.forEach((key) => request.onEnd?.(key));
        resolve(answers.fill(signal?.reason as Error));
        return;
      }
      const entries = keys.map((key, i) => {
        const entry = join(key, request);
        entry.waiters.push((answer) => {
          answers[i] = answer;
          if (--missing > 0) return;
          signal?.removeEventListener("abort", leave);
          resolve(answers);
        });
        return entry;
      });
      const leave = () => {
        entries.forEach((entry, i) => {
          const reason = signal!.reason as Error;
          const isWaiting = waiting.get(keys[i]!) === entry;
          answers[i] ??= (isWaiting && turn === "awaited" ? options.refuse?.(reason) : undefined) ?? reason;
          entry.callers--;
          if (entry.callers === 0 && isWaiting) {
            waiting.delete(keys[i]!);
            entry.onEnd?.(keys[i]!);
          }
        });
        resolve([...answers]);
      };
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  /** The entry of a key that waits or is in flight, unless all its callers have given up: its call is probably failing. */
  function pending(key: string): Entry<Value> | undefined {
    const sent = joinInFlight ? inFlight.get(key) : undefined;
    return waiting.get(key) ?? (sent && sent.callers > 0 ? sent : undefined);
  }

  function join(key: string, request: LoadRequest<Value>): Entry<Value> {
    const { caller, sendBefore = Infinity, left, onEnd } = request;
    const earlier = pending(key);
    if (earlier) onEnd?.(key);
    const entry = earlier ?? add(key, onEnd);
    entry.callers++;
    if (left) entry.left.push(left);
    entry.sendBefore = Math.max(entry.sendBefore, sendBefore);
    if (caller !== undefined) (entry.names ??= new Set()).add(caller);
    return entry;
  }

  function add(key: string, onEnd: LoadRequest<Value>["onEnd"]): Entry<Value> {
    const isAlone = calls === 0 && waiting.size === 0;
    const sendAt = performance.now() + (isAlone ? 0 : maxWaitMs);
    const entry: Entry<Value> = { waiters: [], sendAt, sendBefore: 0, callers: 0, left: [], onEnd };
    waiting.set(key, entry);
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

  function wake(): void {
    timer = undefined;
    send();
  }

  function send(): void {
    while (waiting.size > 0 && calls < maxCalls && millisecondsUntilSend() <= 0 && isItsTurn())
      void sendOne();
    if (waiting.size > maxWaiting)
      for (const [key] of inFairOrder([...waiting], callersOf).slice(maxWaiting)) refuse(key);
    if (waiting.size > 0 && calls < maxCalls && turn !== "awaited")
      // A timer that is already set is never too late, because all keys wait equally long.
      timer ??= setTimeout(wake, Math.max(0, millisecondsUntilSend()));
  }

  /** Whether the next call can be made. If not, sends when its turn comes. */
  function isItsTurn(): boolean {
    if (turn === "awaited") return false;
    const wait = turn === "taken" ? undefined : options.turn?.();
    turn = wait ? "awaited" : "needed";
    void wait?.then(() => {
      turn = "taken";
      send();
    });
    return !wait;
  }

  /** Time until the next batch is due; 0 or less if it is due now. */
  function millisecondsUntilSend(): number {
    const isFull = waiting.size >= maxKeys || waiting.size > maxWaiting;
    if (isFull || (sendAfterCalls && calls === 0)) return 0;
    const [oldest] = waiting.values();
    return oldest!.sendAt - performance.now();
  }

  async function sendOne(): Promise<void> {
    const batch = takeBatch();
    if (batch.size === 0) {
      turn = "taken";
      return;
    }
    calls++;
    options.metrics?.sent(batch.size);
    const answers = await ask([...batch.keys()]).catch((error: unknown) => error as Error);
    calls--;
    for (const [key, entry] of batch) {
      if (inFlight.get(key) === entry) inFlight.delete(key);
      const answer =
        answers instanceof Error ? answers : (answers.get(key) ?? new Error(`no answer for ${key}`));
      entry.onEnd?.(key, answer);
      for (const waiter of entry.waiters) waiter(answer);
    }
    sendAtEndOfTurn();
  }

  function takeBatch(): Map<string, Entry<Value>> {
    const now = performance.now();
    for (const [key, { sendBefore, left, waiters }] of waiting) {
      if (sendBefore < now) refuse(key);
      else if (left.length === waiters.length && left.every((each) => each())) drop(key, left[0]!()!);
    }
    let batch = new Map<string, Entry<Value>>();
    if (waiting.size <= maxKeys && !groupOf) {
      // A map that is emptied and filled again keeps its old entries alive until V8 rehashes it.
      [batch, waiting] = [waiting, batch];
    } else {
      const group = nextGroup();
      for (const [key, entry] of inFairOrder([...waiting], callersOf)) {
        if (batch.size === maxKeys) break;
        if (groupOf && groupOf(key) !== group) continue;
        batch.set(key, entry);
        waiting.delete(key);
      }
    }
    if (joinInFlight) for (const [key, entry] of batch) inFlight.set(key, entry);
    return batch;
  }

  /** The group of the next call: not the last one's, if keys of another group wait. */
  function nextGroup(): unknown {
    if (!groupOf) return undefined;
    const groups = [...waiting.keys()].map(groupOf);
    lastGroup = groups.find((group) => group !== lastGroup) ?? lastGroup;
    return lastGroup;
  }

  function refuse(key: string): void {
    drop(key, options.refuse?.() ?? new Error("too many keys are waiting"));
  }

  function drop(key: string, reason: Error): void {
    const entry = waiting.get(key)!;
    waiting.delete(key);
    entry.onEnd?.(key);
    for (const waiter of entry.waiters) waiter(reason);
  }

  return { load, isPending: (key) => pending(key) !== undefined };
}

const callersOf = ([, { names }]: readonly [string, { readonly names?: Set<string> }]) => names;

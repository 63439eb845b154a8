/** Merges the keys that many callers ask for into few calls. */
export interface Batcher<Value> {
  /**
   * The value of one key. A caller who gives up by `signal` is rejected with its reason, and a key that
   * nobody waits for any more is not asked. Rejects with what `ask` gave or threw, or with `refuse()`.
   */
  load(key: string, signal?: AbortSignal): Promise<Value>;
}

interface Entry<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (reason: unknown) => void;
  /** Until when it waits for company at most. */
  readonly leavesAt: number;
  callers: number;
}

/**
 * A batcher for the whole process. A key that comes while it is idle leaves at once, with all that came in
 * the same turn of the event loop. Keys that come while calls are under way gather: a batch leaves when it
 * is full, when no more keys may wait, when its oldest has waited `maxWaitMs`, or, with `leaveAfterCalls`,
 * as soon as no call is under way any more; and never more than `maxCalls` at once. Beyond `maxWaiting` the
 * newest are refused, and the ones that wait keep their places.
 *
 * `ask` gives a value or an Error for each key. With `joinUnderWay` a key that is being asked for
 * somebody who still waits is not asked again. Keys of different `groupOf` never share a call.
 */
export function createBatcher<Value>(options: {
  ask: (keys: readonly string[]) => Promise<ReadonlyMap<string, Value | Error>>;
  maxKeys: number;
  maxCalls: number;
  maxWaitMs: number;
  leaveAfterCalls?: boolean;
  maxWaiting?: number;
  refuse?: () => Error;
  joinUnderWay?: boolean;
  groupOf?: (key: string) => unknown;
}): Batcher<Value> {
  const { ask, maxKeys, maxCalls, maxWaitMs, maxWaiting = Infinity } = options;
  const { leaveAfterCalls = false, joinUnderWay = false, groupOf = () => undefined } = options;
  const waiting = new Map<string, Entry<Value>>();
  const underWay = new Map<string, Entry<Value>>();
  let calls = 0;
  let isScheduled = false;
  let timer: NodeJS.Timeout | undefined;

  function load(key: string, signal?: AbortSignal): Promise<Value> {
    const asked = joinUnderWay ? underWay.get(key) : undefined;
    // A call that everyone has given up on is likely to end as it did for them.
    const entry = waiting.get(key) ?? (asked && asked.callers > 0 ? asked : undefined) ?? add(key);
    entry.callers++;
    if (!signal) return entry.promise;
    return new Promise<Value>((resolve, reject) => {
      const leave = () => {
        reject(signal.reason as Error);
        entry.callers--;
        if (entry.callers === 0 && waiting.get(key) === entry) waiting.delete(key);
      };
      if (signal.aborted) {
        leave();
        return;
      }
      signal.addEventListener("abort", leave, { once: true });
      const stay = () => {
        signal.removeEventListener("abort", leave);
      };
      entry.promise.then(resolve, reject).finally(stay);
    });
  }

  function add(key: string): Entry<Value> {
    const isAlone = calls === 0 && waiting.size === 0;
    const leavesAt = performance.now() + (isAlone ? 0 : maxWaitMs);
    const entry = { ...Promise.withResolvers<Value>(), leavesAt, callers: 0 };
    // A caller who has left handles no rejection.
    entry.promise.catch(() => undefined);
    waiting.set(key, entry);
    if (!isScheduled) {
      isScheduled = true;
      process.nextTick(() => {
        isScheduled = false;
        send();
      });
    }
    return entry;
  }

  function send(): void {
    while (waiting.size > 0 && calls < maxCalls && millisecondsUntilLeaving() <= 0) void sendOne();
    for (const key of [...waiting.keys()].slice(maxWaiting)) {
      waiting.get(key)!.reject(options.refuse?.());
      waiting.delete(key);
    }
    clearTimeout(timer);
    if (waiting.size > 0 && calls < maxCalls)
      timer = setTimeout(send, Math.max(0, millisecondsUntilLeaving()));
  }

  /** How long the batch that leaves next waits for company still; 0 or less when it waits for none. */
  function millisecondsUntilLeaving(): number {
    const isFull = waiting.size >= maxKeys || waiting.size > maxWaiting;
    if (isFull || (leaveAfterCalls && calls === 0)) return 0;
    const [oldest] = waiting.values();
    return oldest!.leavesAt - performance.now();
  }

  async function sendOne(): Promise<void> {
    const batch = takeBatch();
    calls++;
    const answers = await ask([...batch.keys()]).catch((error: unknown) => error as Error);
    calls--;
    for (const [key, entry] of batch) {
      if (underWay.get(key) === entry) underWay.delete(key);
      const answer =
        answers instanceof Error ? answers : (answers.get(key) ?? new Error(`no answer for ${key}`));
      if (answer instanceof Error) entry.reject(answer);
      else entry.resolve(answer);
    }
    send();
  }

  /** The oldest keys of the oldest key's group. */
  function takeBatch(): Map<string, Entry<Value>> {
    const batch = new Map<string, Entry<Value>>();
    const [oldest] = waiting.keys();
    for (const [key, entry] of waiting) {
      if (batch.size === maxKeys) break;
      if (groupOf(key) !== groupOf(oldest!)) continue;
      batch.set(key, entry);
      waiting.delete(key);
      underWay.set(key, entry);
    }
    return batch;
  }

  return { load };
}

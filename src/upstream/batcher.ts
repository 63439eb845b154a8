import type { BatchMetrics } from "./batch-metrics.ts";

/** Merges the keys that many callers ask for into few calls. */
export interface Batcher<Value> {
  /**
   * The values of keys, in their order, or for each the Error that `ask` gave or threw, or `refuse()`. A
   * caller who gives up by `signal` gets its reason for what is missing, and a key that nobody waits for any
   * more is not asked.
   */
  load(keys: readonly string[], signal?: AbortSignal): Promise<(Value | Error)[]>;
}

interface Entry<Value> {
  /** Are told the answer. */
  readonly waiters: ((answer: Value | Error) => void)[];
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
  metrics?: BatchMetrics | undefined;
}): Batcher<Value> {
  const { ask, maxKeys, maxCalls, maxWaitMs, maxWaiting = Infinity } = options;
  const { leaveAfterCalls = false, joinUnderWay = false, groupOf = () => undefined } = options;
  const waiting = new Map<string, Entry<Value>>();
  const underWay = new Map<string, Entry<Value>>();
  let calls = 0;
  let isScheduled = false;
  let timer: NodeJS.Timeout | undefined;
  options.metrics?.watch(() => waiting.size);

  function load(keys: readonly string[], signal?: AbortSignal): Promise<(Value | Error)[]> {
    return new Promise((resolve) => {
      const answers = new Array<Value | Error>(keys.length);
      let missing = keys.length;
      if (missing === 0 || signal?.aborted) {
        resolve(answers.fill(signal?.reason as Error));
        return;
      }
      const entries = keys.map((key, i) => {
        const entry = join(key);
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
          answers[i] ??= signal!.reason as Error;
          entry.callers--;
          if (entry.callers === 0 && waiting.get(keys[i]!) === entry) waiting.delete(keys[i]!);
        });
        resolve([...answers]);
      };
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  function join(key: string): Entry<Value> {
    const asked = joinUnderWay ? underWay.get(key) : undefined;
    // A call that everyone has given up on is likely to end as it did for them.
    const entry = waiting.get(key) ?? (asked && asked.callers > 0 ? asked : undefined) ?? add(key);
    entry.callers++;
    return entry;
  }

  function add(key: string): Entry<Value> {
    const isAlone = calls === 0 && waiting.size === 0;
    const leavesAt = performance.now() + (isAlone ? 0 : maxWaitMs);
    const entry: Entry<Value> = { waiters: [], leavesAt, callers: 0 };
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
    if (waiting.size > maxWaiting) {
      for (const [key, entry] of [...waiting].slice(maxWaiting)) {
        waiting.delete(key);
        settle(entry, options.refuse?.() ?? new Error("too many keys wait"));
      }
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
    options.metrics?.sent(batch.size);
    const answers = await ask([...batch.keys()]).catch((error: unknown) => error as Error);
    calls--;
    for (const [key, entry] of batch) {
      if (underWay.get(key) === entry) underWay.delete(key);
      settle(
        entry,
        answers instanceof Error ? answers : (answers.get(key) ?? new Error(`no answer for ${key}`)),
      );
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

function settle<Value>({ waiters }: Entry<Value>, answer: Value | Error): void {
  for (const waiter of waiters) waiter(answer);
}

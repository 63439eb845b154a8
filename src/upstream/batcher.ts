import type { BatchMetrics } from "./batch-metrics.ts";

/** Merges the keys that many callers request into few calls. */
export interface Batcher<Value> {
  /**
   * Resolves to the values of the keys, in order. A failed key has the Error that `ask` returned or threw, or
   * `refuse()`. When `signal` aborts, missing values become its reason, and waiting keys without another caller
   * are dropped.
   */
  load(keys: readonly string[], signal?: AbortSignal): Promise<(Value | Error)[]>;
}

interface Entry<Value> {
  readonly waiters: ((answer: Value | Error) => void)[];
  /** When to send it at the latest, if fewer than `maxCalls` calls are in flight. In `performance.now()` time. */
  readonly sendAt: number;
  callers: number;
}

/**
 * A batcher for the whole process. A lone request must not wait, and batches must be largest under load.
 * So a key that arrives while no call is in flight is sent at once, together with all keys of the same turn
 * of the event loop. Keys that arrive while calls are in flight gather: a batch is sent when it is full, when
 * the queue is full, when its oldest key has waited `maxWaitMs`, or, with `sendAfterCalls`, as soon as no
 * call is in flight. At most `maxCalls` calls are in flight. Beyond `maxWaiting` keys the newest are refused.
 *
 * `ask` returns a value or an Error for each key. With `joinInFlight`, a key in flight is not requested again
 * while one of its callers still waits. Keys with different `groupOf` never share a call.
 */
export function createBatcher<Value>(options: {
  ask: (keys: readonly string[]) => Promise<ReadonlyMap<string, Value | Error>>;
  maxKeys: number;
  maxCalls: number;
  maxWaitMs: number;
  sendAfterCalls?: boolean;
  maxWaiting?: number;
  refuse?: () => Error;
  joinInFlight?: boolean;
  groupOf?: (key: string) => unknown;
  metrics?: BatchMetrics | undefined;
}): Batcher<Value> {
  const { ask, maxKeys, maxCalls, maxWaitMs, maxWaiting = Infinity } = options;
  const { sendAfterCalls = false, joinInFlight = false, groupOf = () => undefined } = options;
  const waiting = new Map<string, Entry<Value>>();
  const inFlight = new Map<string, Entry<Value>>();
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
    const sent = joinInFlight ? inFlight.get(key) : undefined;
    // Do not join a key whose callers have all given up: its call is probably failing.
    const entry = waiting.get(key) ?? (sent && sent.callers > 0 ? sent : undefined) ?? add(key);
    entry.callers++;
    return entry;
  }

  function add(key: string): Entry<Value> {
    const isAlone = calls === 0 && waiting.size === 0;
    const sendAt = performance.now() + (isAlone ? 0 : maxWaitMs);
    const entry: Entry<Value> = { waiters: [], sendAt, callers: 0 };
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
    while (waiting.size > 0 && calls < maxCalls && millisecondsUntilSend() <= 0) void sendOne();
    if (waiting.size > maxWaiting) {
      for (const [key, entry] of [...waiting].slice(maxWaiting)) {
        waiting.delete(key);
        settle(entry, options.refuse?.() ?? new Error("too many keys are waiting"));
      }
    }
    clearTimeout(timer);
    if (waiting.size > 0 && calls < maxCalls) timer = setTimeout(send, Math.max(0, millisecondsUntilSend()));
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
    calls++;
    options.metrics?.sent(batch.size);
    const answers = await ask([...batch.keys()]).catch((error: unknown) => error as Error);
    calls--;
    for (const [key, entry] of batch) {
      if (inFlight.get(key) === entry) inFlight.delete(key);
      settle(
        entry,
        answers instanceof Error ? answers : (answers.get(key) ?? new Error(`no answer for ${key}`)),
      );
    }
    send();
  }

  /** Takes the oldest keys that share the oldest key's group. */
  function takeBatch(): Map<string, Entry<Value>> {
    const batch = new Map<string, Entry<Value>>();
    const [oldest] = waiting.keys();
    for (const [key, entry] of waiting) {
      if (batch.size === maxKeys) break;
      if (groupOf(key) !== groupOf(oldest!)) continue;
      batch.set(key, entry);
      waiting.delete(key);
      inFlight.set(key, entry);
    }
    return batch;
  }

  return { load };
}

function settle<Value>({ waiters }: Entry<Value>, answer: Value | Error): void {
  for (const waiter of waiters) waiter(answer);
}

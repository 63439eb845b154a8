import { addMs, monotonicNow, type MonotonicTime, msUntil } from "../time/monotonic.ts";

type Answer<Value> = Value | Error;

/** A key that waits or is in flight. */
interface Entry<Key, Value> {
  readonly key: Key;
  /** When to send the key, unless an earlier call takes it. */
  readonly dueAt: MonotonicTime;
  /** The signals of the key's callers. */
  readonly signals: (AbortSignal | undefined)[];
  readonly waiters: ((answer: Answer<Value>) => void)[];
  isAnswered: boolean;
}

/**
 * Merges the loads of concurrent callers into few calls. While no call is in flight, keys are sent
 * at the end of the event-loop turn: a single key does not wait. While calls are in flight, keys
 * gather: the more callers there are, the more keys a call takes. The gathered keys are sent when
 * they fill a call, when the first key has waited `maxWaitMs`, or when no call is in flight any
 * more. At most `maxCalls` calls are in flight. All callers of a waiting key get its answer; no
 * caller joins a call in flight.
 */
export function createBatcher<Key, Value>(options: {
  /**
   * Calls `answer` with a key's index as soon as the key's value is known. Keys that are still
   * without an answer when `ask` settles get an Error.
   */
  ask: (
    keys: readonly Key[],
    answer: (index: number, answer: Answer<Value>) => void,
  ) => Promise<void>;
  /** Keys are equal if they have the same id. */
  idOf: (key: Key) => string;
  maxKeys: number;
  maxCalls: number;
  maxWaitMs: number;
}) {
  const { ask, idOf, maxKeys, maxCalls, maxWaitMs } = options;
  let waiting = new Map<string, Entry<Key, Value>>();
  let calls = 0;
  let timer: NodeJS.Timeout | undefined;
  let endOfTurn: NodeJS.Immediate | undefined;

  function add(key: Key): Entry<Key, Value> {
    const dueAt = addMs(monotonicNow(), maxWaitMs);
    const entry: Entry<Key, Value> = { key, dueAt, signals: [], waiters: [], isAnswered: false };
    waiting.set(idOf(key), entry);
    endOfTurn ??= setImmediate(send);
    return entry;
  }

  function send(): void {
    endOfTurn = undefined;
    while (waiting.size > 0 && calls < maxCalls && millisecondsUntilDue() <= 0) void sendOne();
    if (waiting.size > 0 && calls < maxCalls)
      // A timer that is already set is never too late, because all keys wait equally long.
      timer ??= setTimeout(() => {
        timer = undefined;
        send();
      }, millisecondsUntilDue());
  }

  function millisecondsUntilDue(): number {
    if (calls === 0 || waiting.size >= maxKeys) return 0;
    const [oldest] = waiting.values();
    return Math.max(0, msUntil(oldest!.dueAt));
  }

  async function sendOne(): Promise<void> {
    const taken = [...waiting.values().take(maxKeys)];
    // A reused map would keep its deleted entries in memory for a long time.
    if (taken.length === waiting.size) waiting = new Map();
    else for (const { key } of taken) waiting.delete(idOf(key));
    const batch = taken.filter((entry) => {
      const isWanted = entry.signals.some((signal) => !signal?.aborted);
      if (!isWanted) answer(entry, entry.signals[0]!.reason as Error);
      return isWanted;
    });
    if (batch.length === 0) return;
    calls++;
    const keys = batch.map(({ key }) => key);
    const error = await ask(keys, (i, value) => {
      answer(batch[i]!, value);
    }).catch((error: unknown) => error as Error);
    calls--;
    for (const entry of batch)
      if (!entry.isAnswered) answer(entry, error ?? new Error(`no answer for ${idOf(entry.key)}`));
    endOfTurn ??= setImmediate(send);
  }

  function answer(entry: Entry<Key, Value>, value: Answer<Value>): void {
    entry.isAnswered = true;
    for (const waiter of entry.waiters) waiter(value);
  }

  return {
    /**
     * Resolves to a value or an Error for each key, in order. When `signal` aborts, keys without an
     * answer get the signal's reason. A key whose callers have all left is not sent.
     */
    load(keys: readonly Key[], signal?: AbortSignal): Promise<Answer<Value>[]> {
      // One promise for all keys saves time: every lookup of a balance runs this code.
      return new Promise((resolve) => {
        const answers = new Array<Answer<Value> | undefined>(keys.length).fill(undefined);
        const leave = () => {
          resolve(answers.map((answer) => answer ?? (signal!.reason as Error)));
        };
        let missing = keys.length;
        if (missing === 0 || signal?.aborted) {
          leave();
          return;
        }
        signal?.addEventListener("abort", leave, { once: true });
        keys.forEach((key, i) => {
          const entry = waiting.get(idOf(key)) ?? add(key);
          entry.signals.push(signal);
          entry.waiters.push((value) => {
            answers[i] = value;
            if (--missing > 0) return;
            signal?.removeEventListener("abort", leave);
            resolve(answers as Answer<Value>[]);
          });
        });
      });
    },
  };
}

import { toError } from "../observability/thrown.ts";
import { untilAborted } from "./deadline.ts";

type Answer<Value> = Value | Error;

/**
 * Calls `answer` with a key's index as soon as the key's value is known. Keys that are still
 * without an answer when it settles get an Error.
 */
type Ask<Key, Value> = (
  batch: readonly Entry<Key>[],
  answer: (index: number, answer: Answer<Value>) => void,
) => Promise<void>;

/** Who waits for keys. */
interface KeyOwner {
  /** The owner's address blocks. */
  readonly blocks: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** A key that waits or is in flight, and the owners that wait for it. */
interface Entry<Key> {
  readonly key: Key;
  readonly owners: ReadonlySet<KeyOwner>;
}

/** Decides when calls are made, with which keys, and which keys are refused. */
export interface Policy<Key> {
  /** Resolves when the next call may be made; undefined if that is now. */
  turn(): Promise<unknown> | undefined;
  /** Sorts the keys if not all fit into a call, or may wait. */
  inOrder<Each extends Entry<Key>>(waiting: readonly Each[]): Each[];
  /** Why a key is not sent, although it is its turn. */
  refusalOf?(entry: Entry<Key>): Error | undefined;
  /** The size of the keys that may wait, and the error of the others. */
  maxWaiting(): number;
  refuse(): Error;
}

interface OwnEntry<Key, Value> extends Entry<Key>, PromiseWithResolvers<Answer<Value>> {
  readonly owners: Set<KeyOwner>;
  /** Whether it has waited for `maxWaitMs`. */
  isDue: boolean;
  answer?: Answer<Value>;
}

/**
 * Merges the loads of concurrent callers into few calls. While no call is in flight, keys are sent
 * at the end of the event-loop turn: a single key does not wait. While calls are in flight, keys
 * gather: the more callers there are, the more keys a call takes. The gathered keys are sent when
 * they fill a call, when the first key has waited `maxWaitMs`, or when no call is in flight any
 * more; each call also waits for its turn by the `policy`. At most `maxCalls` calls are in flight.
 * All callers of a waiting key get its answer; with `joinsInFlight`, also the callers of a key in
 * flight, unless all its earlier callers have left: that call is probably failing.
 */
export function createBatcher<Key, Value>(options: {
  ask: Ask<Key, Value>;
  /** Keys are equal if they have the same id. */
  idOf: (key: Key) => string;
  /** The most keys of a call. */
  maxKeys: number;
  /** As how many keys a key counts in a call with `others`; by default, one. */
  sizeOf?: (key: Key, others?: readonly Key[]) => number;
  maxCalls?: number;
  maxWaitMs?: number;
  joinsInFlight?: boolean;
  policy?: Policy<Key> | undefined;
}) {
  const { ask, idOf, maxKeys, sizeOf = () => 1, joinsInFlight, policy } = options;
  const { maxCalls = Infinity, maxWaitMs = 0 } = options;
  type Own = OwnEntry<Key, Value>;
  /** By id, the entries that a load may join. */
  let entries = new Map<string, Own>();
  let waiting = new Set<Own>();
  /** The size of all waiting keys. */
  let size = 0;
  let calls = 0;
  let isAwaitingTurn = false;
  let hasTurn = false;
  let endOfTurn: NodeJS.Immediate | undefined;

  const maxWaiting = () => policy?.maxWaiting() ?? Infinity;

  function pending(key: Key): Own | undefined {
    const entry = entries.get(idOf(key));
    return entry?.owners.size ? entry : undefined;
  }

  function add(key: Key): Own {
    const entry: Own = {
      ...Promise.withResolvers<Answer<Value>>(),
      ...{ key, owners: new Set(), isDue: false },
    };
    entries.set(idOf(key), entry);
    waiting.add(entry);
    size += sizeOf(key);
    if (maxWaitMs > 0)
      setTimeout(() => {
        entry.isDue = true;
        void send();
      }, maxWaitMs);
    wake();
    return entry;
  }

  function removeFromWaiting(entry: Own): void {
    if (waiting.delete(entry)) size -= sizeOf(entry.key);
  }

  function forget(entry: Own): void {
    const id = idOf(entry.key);
    if (entries.get(id) === entry) entries.delete(id);
  }

  function end(entry: Own, answer: Answer<Value>): void {
    removeFromWaiting(entry);
    forget(entry);
    entry.answer = answer;
    entry.resolve(answer);
  }

  /** Calls `send` at the end of the event-loop turn, so that keys that arrive together go together. */
  function wake(): void {
    endOfTurn ??= setImmediate(() => {
      endOfTurn = undefined;
      void send();
    });
  }

  async function send(): Promise<void> {
    while (!isAwaitingTurn && waiting.size > 0 && calls < maxCalls && isDue()) {
      if (hasTurn) void sendOne();
      else {
        isAwaitingTurn = true;
        await policy?.turn();
        isAwaitingTurn = false;
        hasTurn = true;
      }
    }
    refuseOverflow();
  }

  function isDue(): boolean {
    const [oldest] = waiting;
    return calls === 0 || oldest!.isDue || size >= Math.min(maxKeys, maxWaiting());
  }

  function refuseOverflow(): void {
    let room = maxWaiting();
    if (!policy || size <= room) return;
    for (const entry of policy.inOrder([...waiting])) {
      room -= sizeOf(entry.key);
      if (room < 0) end(entry, policy.refuse());
    }
  }

  /** Removes the keys of the next call. */
  function takeBatch(): Own[] {
    const batch: Own[] = [];
    const keys: Key[] = [];
    let room = maxKeys;
    for (const entry of (size > maxKeys && policy?.inOrder([...waiting])) || waiting) {
      const refusal = policy?.refusalOf?.(entry);
      if (refusal) end(entry, refusal);
      const addedSize = sizeOf(entry.key, keys);
      if (refusal || (addedSize > room && batch.length > 0)) continue;
      batch.push(entry);
      keys.push(entry.key);
      removeFromWaiting(entry);
      if (!joinsInFlight) forget(entry);
      room -= addedSize;
      if (room <= 0) break;
    }
    // V8 keeps what a changing Map or Set once held until the next full garbage collection.
    entries = new Map(entries);
    waiting = new Set(waiting);
    return batch;
  }

  async function sendOne(): Promise<void> {
    const batch = takeBatch();
    // Keep the turn for the next key.
    if (batch.length === 0) return;
    hasTurn = false;
    calls++;
    const error = await ask(batch, (i, value) => {
      end(batch[i]!, value);
    }).catch(toError);
    calls--;
    wake();
    for (const entry of batch)
      if (entry.answer === undefined)
        end(entry, error ?? new Error(`no answer for ${idOf(entry.key)}`));
  }

  return {
    /**
     * Resolves to a value or an Error for each key, in order. When the owner's `signal` aborts,
     * keys without an answer get the signal's reason. A key whose owners have all left is not sent.
     */
    load(keys: readonly Key[], owner: KeyOwner): Promise<Answer<Value>[]> {
      const { signal } = owner;
      const ownEntries = keys.map((key) => {
        const entry = pending(key) ?? add(key);
        entry.owners.add(owner);
        return entry;
      });
      const answers = Promise.all(ownEntries.map(({ promise }) => promise));
      if (!signal) return answers;
      return untilAborted(answers, signal).catch((thrown: unknown) => {
        const reason = toError(thrown);
        return ownEntries.map((entry) => {
          entry.owners.delete(owner);
          // Free the key's place at once.
          if (entry.owners.size === 0 && waiting.has(entry)) end(entry, reason);
          return entry.answer ?? reason;
        });
      });
    },
    /** The answer of an earlier load that a load of the key would join, if there is one. */
    pending: (key: Key): Promise<Answer<Value>> | undefined => pending(key)?.promise,
    /** Whether a call with the key has no answer yet, if loads join it. */
    isInFlight(key: Key): boolean {
      const entry = entries.get(idOf(key));
      return entry !== undefined && !waiting.has(entry);
    },
    /** The number of keys that wait for a call. */
    waiting: () => waiting.size,
  };
}

/** The address blocks of the owners that wait for a key. */
export const blocksOf = ({ owners }: Entry<unknown>): string[] => [
  ...new Set([...owners].flatMap(({ blocks }) => blocks)),
];

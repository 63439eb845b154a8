import { reasonOf, toError } from "../observability/thrown.ts";
import { addMs, monotonicNow, type MonotonicTime, msUntil } from "../time/monotonic.ts";

type Answer<Value> = Value | Error;

/**
 * Calls `answer` with a key's index as soon as the key's value is known. Keys that are still
 * without an answer when it settles get an Error.
 */
export type Ask<Key, Value> = (
  keys: readonly Key[],
  answer: (index: number, answer: Answer<Value>) => void,
) => Promise<void>;

/** Who waits for keys. */
export interface KeyOwner {
  /** The owner's address blocks. */
  readonly blocks: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** A key that waits or is in flight, and the owners that wait for it. */
export interface Entry<Key, Owner> {
  readonly key: Key;
  readonly owners: ReadonlySet<Owner>;
}

/** Decides when calls are made, with which keys, and which keys are refused. */
interface Policy<Key, Owner, Value> {
  /** Resolves when the next call may be made; undefined if that is now. A rejection fails all keys. */
  turn?(waiting: () => IteratorObject<Entry<Key, Owner>>): Promise<unknown> | undefined;
  /** Sorts the keys if not all fit into a call, or may wait. */
  inOrder<Each extends Entry<Key, Owner>>(waiting: readonly Each[]): Each[];
  /** Why a key is not sent, although it is its turn. */
  refusalOf?(entry: Entry<Key, Owner>): Error | undefined;
  /** The size of the keys that may wait, and the error of the others. */
  maxWaiting(): number;
  refuse(): Error;
  /** The answer of a waiting key for an owner who leaves; by default, the signal's reason. */
  reasonToLeave?(owner: Owner): Error;
  /** Makes a call for the owners of its keys. */
  run?(batch: readonly Entry<Key, Owner>[], make: () => Promise<void>): Promise<void>;
  /** Called once for each key of the owner who first asked for it; without `answer` if not sent. */
  onEnd?(first: Owner, answer?: Answer<Value>): void;
}

interface OwnEntry<Key, Owner, Value>
  extends Entry<Key, Owner>, PromiseWithResolvers<Answer<Value>> {
  readonly owners: Set<Owner>;
  readonly first: Owner;
  /** When to send the key, unless an earlier call takes it. */
  readonly dueAt: MonotonicTime;
  isSent: boolean;
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
export function createBatcher<Key, Value, Owner extends KeyOwner = KeyOwner>(options: {
  ask: Ask<Key, Value>;
  /** Keys are equal if they have the same id. */
  idOf: (key: Key) => string;
  /** The most keys of a call. */
  maxKeys: number;
  /** As how many keys a key counts in a call with `others`; by default, one. */
  sizeOf?: (key: Key, others?: readonly Key[]) => number;
  maxCalls: number;
  maxWaitMs: number;
  joinsInFlight?: boolean;
  policy?: Policy<Key, Owner, Value> | undefined;
}) {
  const { ask, idOf, maxKeys, sizeOf = () => 1, maxCalls, maxWaitMs, joinsInFlight } = options;
  const { policy } = options;
  type Own = OwnEntry<Key, Owner, Value>;
  const waiting = new Map<string, Own>();
  const inFlight = new Map<string, Own>();
  /** The size of all waiting keys. */
  let size = 0;
  let calls = 0;
  let turn: "needed" | "awaited" | "here" = "needed";
  let timer: NodeJS.Timeout | undefined;
  let endOfTurn: NodeJS.Immediate | undefined;

  function pending(key: Key): Own | undefined {
    const id = idOf(key);
    const sentEntry = inFlight.get(id);
    return waiting.get(id) ?? (sentEntry?.owners.size ? sentEntry : undefined);
  }

  function add(key: Key, first: Owner): Own {
    const dueAt = addMs(monotonicNow(), maxWaitMs);
    const entry: Own = {
      ...Promise.withResolvers<Answer<Value>>(),
      ...{ key, first, owners: new Set<Owner>(), dueAt, isSent: false },
    };
    waiting.set(idOf(key), entry);
    size += sizeOf(key);
    wake();
    return entry;
  }

  function removeFromWaiting({ key }: Own): void {
    waiting.delete(idOf(key));
    size -= sizeOf(key);
  }

  function end(entry: Own, answer: Answer<Value>): void {
    const id = idOf(entry.key);
    if (!entry.isSent) removeFromWaiting(entry);
    else if (inFlight.get(id) === entry) inFlight.delete(id);
    entry.answer = answer;
    policy?.onEnd?.(entry.first, entry.isSent ? answer : undefined);
    entry.resolve(answer);
  }

  /** Calls `send` at the end of the event-loop turn, so that keys that arrive together go together. */
  function wake(): void {
    endOfTurn ??= setImmediate(() => {
      endOfTurn = undefined;
      send();
    });
  }

  function send(): void {
    while (waiting.size > 0 && calls < maxCalls && turn !== "awaited") {
      const dueMs = millisecondsUntilDue();
      if (dueMs > 0) {
        // A timer that is already set is never too late, because all keys wait equally long.
        timer ??= setTimeout(() => {
          timer = undefined;
          send();
        }, dueMs);
        return;
      }
      if (turn === "needed") takeTurn();
      if (turn === "here") void sendOne();
    }
    refuseOverflow();
  }

  function millisecondsUntilDue(): number {
    if (calls === 0 || size >= maxKeys || size > maxWaiting()) return 0;
    const [oldest] = waiting.values();
    return oldest ? msUntil(oldest.dueAt) : 0;
  }

  const maxWaiting = () => policy?.maxWaiting() ?? Infinity;

  function refuseOverflow(): void {
    let room = maxWaiting();
    if (!policy || size <= room) return;
    for (const entry of policy.inOrder([...waiting.values()])) {
      room -= sizeOf(entry.key);
      if (room < 0) end(entry, policy.refuse());
    }
  }

  function takeTurn(): void {
    const wait = policy?.turn?.(() => waiting.values());
    turn = wait ? "awaited" : "here";
    void wait
      ?.then(
        () => (turn = "here"),
        (error: unknown) => {
          turn = "needed";
          for (const entry of waiting.values()) end(entry, toError(error));
        },
      )
      .finally(wake);
  }

  /** Removes the keys of the next call. */
  function takeBatch(): Own[] {
    const batch: Own[] = [];
    const keys: Key[] = [];
    let room = maxKeys;
    const entries = [...waiting.values()];
    for (const entry of policy && size > room ? policy.inOrder(entries) : entries) {
      const refusal = policy?.refusalOf?.(entry);
      if (refusal) {
        end(entry, refusal);
        continue;
      }
      const addedSize = sizeOf(entry.key, keys);
      if (addedSize > room && batch.length > 0) continue;
      batch.push(entry);
      keys.push(entry.key);
      room -= addedSize;
      if (room <= 0) break;
    }
    for (const entry of batch) {
      removeFromWaiting(entry);
      entry.isSent = true;
      if (joinsInFlight) inFlight.set(idOf(entry.key), entry);
    }
    return batch;
  }

  async function sendOne(): Promise<void> {
    const batch = takeBatch();
    // Keep the turn for the next key.
    if (batch.length === 0) return;
    turn = "needed";
    calls++;
    const make = async () =>
      ask(
        batch.map(({ key }) => key),
        (i, value) => {
          end(batch[i]!, value);
        },
      );
    const error = await (policy?.run?.(batch, make) ?? make()).catch(toError);
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
    load(keys: readonly Key[], owner: Owner): Promise<Answer<Value>[]> {
      const { signal } = owner;
      const entries = keys.map((key) => {
        const entry = pending(key) ?? add(key, owner);
        entry.owners.add(owner);
        return entry;
      });
      return new Promise((resolve) => {
        const leave = () => {
          const reason = reasonOf(signal!);
          const reasonOfWaiting = policy?.reasonToLeave?.(owner) ?? reason;
          resolve(
            entries.map(({ answer, isSent }) => answer ?? (isSent ? reason : reasonOfWaiting)),
          );
          for (const entry of entries) {
            entry.owners.delete(owner);
            // Free the key's place at once.
            if (entry.owners.size === 0 && waiting.get(idOf(entry.key)) === entry)
              end(entry, reason);
          }
        };
        if (signal?.aborted) leave();
        else signal?.addEventListener("abort", leave, { once: true });
        void Promise.all(entries.map(({ promise }) => promise)).then((answers) => {
          signal?.removeEventListener("abort", leave);
          resolve(answers);
        });
      });
    },
    /** Whether a load of the key would join an earlier load. */
    isPending: (key: Key): boolean => pending(key) !== undefined,
    /** The number of keys that wait for a call. */
    waiting: () => waiting.size,
  };
}

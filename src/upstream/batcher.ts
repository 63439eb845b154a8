import { partsOf, type Batches } from "../fairness/chain-call-plan.ts";
import { reasonOf, toError } from "../observability/thrown.ts";
import { addMs, monotonicNow, type MonotonicTime, msUntil } from "../time/monotonic.ts";
import { createDispatchClock } from "./dispatch-clock.ts";

type Answer<Value> = Value | Error;

/**
 * Calls `answer` with a key's index as soon as the key's value is known. Keys that are still
 * without an answer when it settles get an Error.
 */
export type Ask<Key, Value> = (
  keys: readonly Key[],
  answer: (index: number, answer: Answer<Value>) => void,
) => Promise<void>;

/** Who waits for a key. */
interface KeyOwner {
  readonly blocks: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** A key that waits or is in flight. */
interface Entry<Key, Value> {
  readonly key: Key;
  /** When to send the key, unless an earlier call takes it. */
  readonly dueAt: MonotonicTime;
  readonly owners: KeyOwner[];
  readonly waiters: ((answer: Answer<Value>) => void)[];
  isAnswered: boolean;
}

const NO_OWNER: KeyOwner = { blocks: [] };
/** Stands for the answer of a key until it is known. */
const UNANSWERED = new Error("no answer yet");

/**
 * Merges the loads of concurrent callers into few calls. While no call is in flight, keys are sent
 * at the end of the event-loop turn: a single key does not wait. While calls are in flight, keys
 * gather: the more callers there are, the more keys a call takes. The gathered keys are sent when
 * they fill a call, when the first key has waited `maxWaitMs`, or when no call is in flight any
 * more. At most `maxCalls` calls are in flight. All callers of a waiting key get its answer; no
 * caller joins a call in flight.
 *
 * With `batches`, a batch waits for its turn in the plan of calls, and keys gather meanwhile. It
 * makes as many calls as the plan allows now, and takes the keys of the blocks that have used least
 * of their shares. The owners of its keys share its cost.
 */
export function createBatcher<Key, Value>(options: {
  ask: Ask<Key, Value>;
  /** Keys are equal if they have the same id. */
  idOf: (key: Key) => string;
  /** The most keys of a batch. */
  maxKeys: number;
  /** The keys of each call that a batch makes; by default, it makes one. */
  keysPerCall?: number;
  /** As how many keys a key counts in a call with `others`; by default, one. */
  sizeOf?: (key: Key, others?: readonly Key[]) => number;
  maxCalls: number;
  maxWaitMs: number;
  batches?: Batches | undefined;
}) {
  const { ask, idOf, maxKeys, sizeOf = () => 1, maxCalls, maxWaitMs, batches } = options;
  const { keysPerCall = maxKeys } = options;
  type Waiting = Entry<Key, Value>;
  let waiting = new Map<string, Waiting>();
  /** The size of all waiting keys. */
  let size = 0;
  let isTakingTurn = false;
  const clock = createDispatchClock(send);

  function add(key: Key): Waiting {
    const dueAt = addMs(monotonicNow(), maxWaitMs);
    const entry: Waiting = { key, dueAt, owners: [], waiters: [], isAnswered: false };
    waiting.set(idOf(key), entry);
    size += sizeOf(key);
    clock.wake();
    return entry;
  }

  function remove(entries: readonly Waiting[]): void {
    for (const { key } of entries) size -= sizeOf(key);
    // A reused map would keep its deleted entries in memory for a long time.
    if (entries.length === waiting.size) waiting = new Map();
    else for (const { key } of entries) waiting.delete(idOf(key));
  }

  function refuse(entries: readonly Waiting[], refusal: () => Error): void {
    remove(entries);
    for (const entry of entries) answer(entry, refusal());
  }

  function send(): number | undefined {
    if (batches && size > keysPerCall * batches.maxWaiting()) refuseLast(batches);
    while (waiting.size > 0 && clock.calls() < maxCalls && !isTakingTurn) {
      const dueMs = millisecondsUntilDue();
      if (dueMs > 0) return dueMs;
      takeTurn();
    }
    return undefined;
  }

  /** Keeps what fits into the most calls that may wait. */
  function refuseLast({ maxWaiting, refusalOfMany }: Batches): void {
    let room = keysPerCall * maxWaiting();
    const last: Waiting[] = [];
    for (const entry of inOrder(room)) {
      room -= sizeOf(entry.key);
      if (room < 0) last.push(entry);
    }
    refuse(last, refusalOfMany);
  }

  function millisecondsUntilDue(): number {
    if (clock.calls() === 0 || size >= maxKeys) return 0;
    const [oldest] = waiting.values();
    return oldest ? Math.max(0, msUntil(oldest.dueAt)) : 0;
  }

  function takeTurn(): void {
    const turn = batches?.turn(() => waiting.values().flatMap(blocksOf));
    if (!turn) {
      void sendOne();
      return;
    }
    isTakingTurn = true;
    void turn
      .then(() => void sendOne())
      .catch((error: unknown) => {
        refuse([...waiting.values()], () => toError(error));
      })
      .finally(() => {
        isTakingTurn = false;
        clock.wake();
      });
  }

  const inOrder = (room: number) =>
    batches && size > room
      ? batches.inOrder(waiting.values(), blocksOf, ({ key }) => sizeOf(key) / keysPerCall)
      : [...waiting.values()];

  /** Removes the keys of the next batch. Refuses keys whose blocks have used their shares. */
  function takeBatch(mostKeys: number): Waiting[] {
    const refusals = new Map<Waiting, Error>();
    const batch: Waiting[] = [];
    const keys: Key[] = [];
    let room = mostKeys;
    for (const entry of inOrder(room)) {
      const { owners, key } = entry;
      const waitingOwners = owners.length === 1 ? owners : owners.filter(isWaiting);
      const refusal =
        reasonToLeave(owners) ?? batches?.refusalOf(blocksOf({ owners: waitingOwners }));
      if (refusal) {
        refusals.set(entry, refusal);
        continue;
      }
      const addedSize = sizeOf(key, keys);
      if (addedSize > room && batch.length > 0) continue;
      batch.push(entry);
      keys.push(key);
      room -= addedSize;
      if (room <= 0) break;
    }
    for (const [entry, refusal] of refusals) refuse([entry], () => refusal);
    remove(batch);
    return batch;
  }

  async function sendOne(): Promise<void> {
    const more = Math.ceil(Math.min(size, maxKeys) / keysPerCall) - 1;
    const takenCalls = 1 + (batches?.takeMore(more) ?? more);
    const batch = takeBatch(takenCalls * keysPerCall);
    const keys = batch.map(({ key }) => key);
    const run = async () =>
      keys.length > 0 &&
      ask(keys, (i, value) => {
        answer(batch[i]!, value);
      });
    const parts = partsOf(batch, blocksOf, ({ key }) => sizeOf(key));
    const error = await clock
      .call(() => (batches ? batches.run(parts, run, takenCalls) : run()))
      .catch(toError);
    for (const entry of batch)
      if (!entry.isAnswered) answer(entry, error || new Error(`no answer for ${idOf(entry.key)}`));
  }

  function answer(entry: Waiting, value: Answer<Value>): void {
    entry.isAnswered = true;
    for (const waiter of entry.waiters) waiter(value);
  }

  return {
    /**
     * Resolves to a value or an Error for each key, in order. When the owner's `signal` aborts,
     * keys without an answer get the signal's reason. A key whose owners have all left is not sent.
     */
    load(keys: readonly Key[], owner = NO_OWNER): Promise<Answer<Value>[]> {
      const { signal } = owner;
      // One promise for all keys saves time: every lookup of a balance runs this code.
      return new Promise((resolve) => {
        const answers = new Array<Answer<Value>>(keys.length).fill(UNANSWERED);
        const leave = () => {
          const reason = signal ? reasonOf(signal) : UNANSWERED;
          resolve(answers.map((answer) => (answer === UNANSWERED ? reason : answer)));
        };
        let missing = keys.length;
        if (missing === 0 || signal?.aborted) {
          leave();
          return;
        }
        signal?.addEventListener("abort", leave, { once: true });
        keys.forEach((key, i) => {
          const entry = waiting.get(idOf(key)) ?? add(key);
          entry.owners.push(owner);
          entry.waiters.push((value) => {
            answers[i] = value;
            if (--missing > 0) return;
            signal?.removeEventListener("abort", leave);
            resolve(answers);
          });
        });
      });
    },
  };
}

const isWaiting = ({ signal }: KeyOwner) => !signal?.aborted;

/** Why nobody waits for a key any more: the first owner's reason; undefined if an owner waits. */
function reasonToLeave(owners: readonly KeyOwner[]): Error | undefined {
  const signal = owners[0]?.signal;
  return signal && !owners.some(isWaiting) ? reasonOf(signal) : undefined;
}

function blocksOf({ owners }: { readonly owners: readonly KeyOwner[] }): readonly string[] {
  const owner = owners[0];
  return owner && owners.length === 1 ? owner.blocks : owners.flatMap(({ blocks }) => blocks);
}

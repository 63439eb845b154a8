import { inFairOrder } from "./fair-order.ts";

/** Who waits to run a task. */
export interface Waiter {
  /** The address blocks of all callers who want the task done. Others may join while it waits. */
  readonly blocks: () => Iterable<string>;
  /** Takes the task out of the queue. It does not stop a task that runs. */
  readonly signal: AbortSignal;
}

interface Place extends PromiseWithResolvers<undefined> {
  readonly blocks: Waiter["blocks"];
}

/**
 * Returns a function that runs tasks: at most `maxRunning` at once, while up to `maxWaiting` wait. It rejects with the
 * error of the task, with that of `refuse` if the queue is full, or with the reason of a signal that aborts first.
 *
 * Address blocks share it fairly. The next task is the oldest one of the blocks that run the fewest. A full queue
 * keeps equally many tasks of each block. Tasks start at the end of an event-loop turn, so that the order within the
 * turn does not matter.
 */
export function createSemaphore(options: { maxRunning: number; maxWaiting: number; refuse: () => Error }) {
  const { maxRunning, maxWaiting, refuse } = options;
  const waiting = new Set<Place>();
  const running = new Set<Place>();
  let isScheduled = false;

  function startAtEndOfTurn(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      while (waiting.size > 0 && running.size < maxRunning) {
        const place = next();
        waiting.delete(place);
        running.add(place);
        place.resolve(undefined);
      }
      if (waiting.size > maxWaiting)
        for (const place of inFairOrder([...waiting], blocksOf).slice(maxWaiting)) remove(place, refuse());
    });
  }

  function next(): Place {
    const counts = new Map<string, number>();
    for (const place of running)
      for (const block of place.blocks()) counts.set(block, (counts.get(block) ?? 0) + 1);
    const countOf = (place: Place) =>
      Math.min(...Array.from(place.blocks(), (block) => counts.get(block) ?? 0));
    return [...waiting].reduce((best, place) => (countOf(place) < countOf(best) ? place : best));
  }

  function remove(place: Place, reason: Error): void {
    waiting.delete(place);
    place.reject(reason);
  }

  return async <T>(task: () => Promise<T>, { blocks, signal }: Waiter): Promise<T> => {
    signal.throwIfAborted();
    const place = { ...Promise.withResolvers<undefined>(), blocks };
    const leave = () => {
      remove(place, signal.reason as Error);
    };
    signal.addEventListener("abort", leave, { once: true });
    waiting.add(place);
    startAtEndOfTurn();
    try {
      await place.promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
    try {
      signal.throwIfAborted();
      return await task();
    } finally {
      running.delete(place);
      startAtEndOfTurn();
    }
  };
}

const blocksOf = ({ blocks }: Place) => blocks();

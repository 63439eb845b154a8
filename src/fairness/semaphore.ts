import { AsyncResource } from "node:async_hooks";
import type { Caller } from "./caller.ts";
import { inFairOrder } from "./fair-order.ts";

/** A task that waits for its turn or runs. Several callers can join it. */
export interface Task<T> {
  /**
   * Waits for the task's result. Rejects with the task's error, the error of `refuse`, or the
   * signal's reason.
   */
  join(caller: Caller): Promise<T>;
}

interface Place<T> {
  readonly run: () => Promise<T>;
  readonly onEnd: () => void;
  /** How many callers of each address block wait. A running task keeps its last block. */
  readonly callers: Map<string, number>;
  readonly waiters: Set<PromiseWithResolvers<T>>;
}

/**
 * Runs at most `maxRunning` tasks at once, while up to `maxWaiting` wait. Address blocks are equal:
 * the next task is the oldest of the blocks with the fewest running tasks. A full queue refuses the
 * newest task of the blocks with the most tasks. A task whose callers have all left is not started.
 * Tasks start at the end of the event-loop turn, so that the order of arrival within a turn gives
 * no advantage.
 */
export function createSemaphore<T>(options: {
  maxRunning: number;
  maxWaiting: number;
  refuse: () => Error;
}) {
  const { maxRunning, maxWaiting, refuse } = options;
  const waiting = new Set<Place<T>>();
  const running = new Set<Place<T>>();
  let endOfTurn: NodeJS.Immediate | undefined;

  function startNext(): void {
    endOfTurn = undefined;
    const inOrder = inFairOrder([...running, ...waiting], blocksOf).filter((place) =>
      waiting.has(place),
    );
    for (const place of inOrder.splice(0, maxRunning - running.size)) start(place);
    for (const place of inOrder.slice(maxWaiting)) reject(place, refuse());
  }

  function start(place: Place<T>): void {
    waiting.delete(place);
    running.add(place);
    place.run().then(
      (result) => {
        end(place);
        for (const { resolve } of place.waiters) resolve(result);
      },
      (error: unknown) => {
        reject(place, error);
      },
    );
  }

  function reject(place: Place<T>, error: unknown): void {
    end(place);
    for (const waiter of place.waiters) waiter.reject(error);
  }

  function end(place: Place<T>): void {
    waiting.delete(place);
    place.onEnd();
    if (running.delete(place)) startNext();
  }

  /**
   * Adds a task; join it at once. Calls `onEnd` when the task ends, is refused, or loses all
   * callers while waiting.
   */
  return (run: () => Promise<T>, onEnd: () => void = () => undefined): Task<T> => {
    // Bind `run`: its spans belong to the request that adds the task, not to the task whose end
    // starts this one.
    const place: Place<T> = {
      run: AsyncResource.bind(run),
      onEnd,
      callers: new Map(),
      waiters: new Set(),
    };
    waiting.add(place);
    endOfTurn ??= setImmediate(startNext);
    return {
      async join({ addressBlock, signal }) {
        const waiter = Promise.withResolvers<T>();
        const leave = () => {
          waiter.reject(signal.reason);
        };
        if (signal.aborted) leave();
        signal.addEventListener("abort", leave, { once: true });
        const { callers } = place;
        callers.set(addressBlock, (callers.get(addressBlock) ?? 0) + 1);
        place.waiters.add(waiter);
        try {
          return await waiter.promise;
        } finally {
          signal.removeEventListener("abort", leave);
          place.waiters.delete(waiter);
          const left = callers.get(addressBlock)! - 1;
          if (left > 0 || (running.has(place) && callers.size === 1))
            callers.set(addressBlock, left);
          else callers.delete(addressBlock);
          if (place.waiters.size === 0 && waiting.has(place)) end(place);
        }
      },
    };
  };
}

const blocksOf = ({ callers }: { readonly callers: ReadonlyMap<string, number> }) => callers.keys();

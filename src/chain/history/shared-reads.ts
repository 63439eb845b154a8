import { ContractError } from "../../contract/contract-error.ts";
import { createSemaphore, type Blocks, type Task } from "../../fairness/semaphore.ts";

/** A caller that reads a history. */
export interface HistoryReader {
  readonly signal: AbortSignal;
  /** Readers in the same block of IP addresses share one budget of calls. */
  readonly addressBlock: string;
}

/** Providers allow about ten calls a second or more. */
const MAX_IN_FLIGHT = 8;
/** The most reads that wait; more are refused. At 0.2 s per call the last one waits about 25 s. */
const MAX_WAITING = 1_000;

/**
 * Returns a function that reads a key, or joins another reader's read of the same key. A read can be joined while it
 * waits for its turn; with `joinsInFlight`, until it ends. `read` receives its readers' address blocks. Rejects with
 * the read's error, ContractError SERVICE_BUSY, or the reader's abort reason.
 */
export function createSharedReads<T>({ joinsInFlight }: { joinsInFlight: boolean }) {
  const addTask = createSemaphore<T>({
    maxRunning: MAX_IN_FLIGHT,
    maxWaiting: MAX_WAITING,
    refuse: () =>
      new ContractError("SERVICE_BUSY", {
        message: "Too many histories are being read. Try again in 30 seconds.",
      }),
  });
  /** The reads that others can join. */
  const tasks = new Map<string, Task<T>>();

  function add(key: string, read: (blocks: Blocks) => Promise<T>): Task<T> {
    const forget = () => {
      if (tasks.get(key) === task) tasks.delete(key);
    };
    const run = (blocks: Blocks) => {
      if (!joinsInFlight) forget();
      return read(blocks);
    };
    const task = addTask(run, forget);
    tasks.set(key, task);
    return task;
  }

  return (key: string, read: (blocks: Blocks) => Promise<T>, reader: HistoryReader): Promise<T> => {
    const task = tasks.get(key);
    // A read in flight that all its readers have left is probably failing.
    return (task?.hasCallers() ? task : add(key, read)).join(reader);
  };
}

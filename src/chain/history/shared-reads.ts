import { ContractError } from "../../contract/contract-error.ts";
import { createSemaphore } from "../../upstream/semaphore.ts";
import { untilAborted } from "../rpc/deadline.ts";

/** Who reads a history. */
export interface HistoryReader {
  readonly signal: AbortSignal;
  /** Readers in the same block of IP addresses share one part of the calls. */
  readonly addressBlock: string;
}

interface SharedRead<T> {
  readonly result: Promise<T>;
  readonly blocks: Set<string>;
  readers: number;
  /** Takes the read out of the queue. */
  readonly abandoned: AbortController;
}

/** Providers allow about ten calls a second or more. */
const MAX_IN_FLIGHT = 8;
/** The most reads that wait; more are refused. At 0.2 s per call the last one waits about 25 s. */
const MAX_WAITING = 1_000;

/**
 * Returns a function that reads for one reader, or joins the read of another with the same key: while that waits for
 * its turn, and with `joinsInFlight` until it ends. A read that all its readers have left is not joined, and not
 * started. Rejects with the error of the read, ContractError SERVICE_BUSY, or the reader's abort reason.
 */
export function createSharedReads<T>({ joinsInFlight }: { joinsInFlight: boolean }) {
  const runInTurn = createSemaphore({
    maxRunning: MAX_IN_FLIGHT,
    maxWaiting: MAX_WAITING,
    refuse: () =>
      new ContractError("SERVICE_BUSY", {
        message: "Too many histories are being read. Try again in 30 seconds.",
      }),
  });
  /** The reads that others can join. */
  const reads = new Map<string, SharedRead<T>>();

  function add(key: string, read: () => Promise<T>): SharedRead<T> {
    const blocks = new Set<string>();
    const abandoned = new AbortController();
    const start = () => {
      if (!joinsInFlight) reads.delete(key);
      return read();
    };
    const result = runInTurn(start, { blocks: () => blocks, signal: abandoned.signal });
    const shared = { result, blocks, readers: 0, abandoned };
    reads.set(key, shared);
    return shared;
  }

  return async (key: string, read: () => Promise<T>, { signal, addressBlock }: HistoryReader): Promise<T> => {
    const shared = reads.get(key) ?? add(key, read);
    shared.blocks.add(addressBlock);
    shared.readers++;
    try {
      return await untilAborted(shared.result, signal);
    } finally {
      shared.readers--;
      if (shared.readers === 0) {
        shared.abandoned.abort();
        if (reads.get(key) === shared) reads.delete(key);
      }
    }
  };
}

/** Who loads keys, and what for. */
export interface LoadRequest<Value> {
  /** Callers share calls and the queue equally. Absent: first come, first served. */
  readonly caller?: string;
  /** After this time keys are refused instead of sent. In `performance.now()` time; default: never. */
  readonly sendBefore?: number;
  /**
   * Instead of a signal: why the caller has left; undefined while it waits. Called when a batch is sent: keys without
   * another caller are dropped. A signal for each request would cost more than the rest of its load.
   */
  readonly left?: () => Error | undefined;
  /**
   * Called once for each key: with the answer if this load caused the call; without one if the key joined an earlier
   * load's call, or was never sent.
   */
  readonly onEnd?: (key: string, answer?: Value | Error) => void;
}

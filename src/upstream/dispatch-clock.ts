/**
 * Decides when a queue sends: at the end of each event-loop turn in which something changed, so
 * that keys which arrive together are sent together, and when the time has come that `send`
 * returned. Counts the calls in flight.
 *
 * `send` sends what is due. It returns the ms until more is due; undefined if only a later change
 * can make more due, such as the end of a call.
 */
export function createDispatchClock(send: () => number | undefined) {
  let calls = 0;
  let timer: NodeJS.Timeout | undefined;
  let endOfTurn: NodeJS.Immediate | undefined;

  function run(): void {
    const dueMs = send();
    if (dueMs === undefined) return;
    // A timer that is already set is never too late, because all keys wait equally long.
    timer ??= setTimeout(() => {
      timer = undefined;
      run();
    }, dueMs);
  }

  function wake(): void {
    endOfTurn ??= setImmediate(() => {
      endOfTurn = undefined;
      run();
    });
  }

  return {
    /** Calls `send` at the end of the event-loop turn. */
    wake,
    /** The number of calls in flight. */
    calls: () => calls,
    /** Makes a call. When it has ended, calls `send` at the end of the event-loop turn. */
    async call<Result>(make: () => Promise<Result>): Promise<Result> {
      calls++;
      try {
        return await make();
      } finally {
        calls--;
        wake();
      }
    },
  };
}

/** Returns a function that lets `run` run at the end of the event-loop turn: once, however often it is called in the turn. */
export function atEndOfTurn(run: () => void): () => void {
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      run();
    });
  };
}

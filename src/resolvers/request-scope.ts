/** What was read for a request: handles that were known, and what was asked of the upstreams. */
export interface Reads {
  cached: number;
  social: number;
  chain: number;
}

/** A request, as those who answer it see it. */
export interface Caller {
  /** Aborts when nobody waits for the answer any more. Asked for only by those that wait. */
  readonly signal: AbortSignal;
  readonly reads: Reads;
  /** Takes down the code of an error that the answer shows, for the log and the metrics; the first counts. */
  note(code: string): void;
}

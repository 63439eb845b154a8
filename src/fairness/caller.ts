/**
 * Someone who waits for a result. All callers of an address block together have one share of each
 * limit.
 */
export interface Caller {
  readonly addressBlock: string;
  /** Aborts when the caller no longer needs the result. */
  readonly signal: AbortSignal;
}

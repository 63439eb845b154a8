/** At most `max` requests of one caller in any span of `windowMs`. */
export interface Limit {
  readonly max: number;
  readonly windowMs: number;
}

/** The result of a reservation. The request is recorded only if it fits: `counted` plus its cost is at most `max`. */
export interface Reservation {
  /** The caller's earlier requests that are still in the window. */
  readonly counted: number;
  /** The time recorded for the request. */
  readonly at: number;
  /**
   * Time until this request would fit. If it fits: until the oldest request leaves the window. If its cost can
   * never fit: until all requests have left the window.
   */
  readonly waitMs: number;
}

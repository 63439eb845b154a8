/** At most `max` requests of one caller in any span of `windowMs`. */
export interface Limit {
  readonly max: number;
  readonly windowMs: number;
}

/** The result of a reservation. The request was recorded only if it fits: if `counted` and its cost are at most `max`. */
export interface Reservation {
  /** The caller's earlier requests that are still in the window. */
  readonly counted: number;
  /** The time that the request was recorded with. */
  readonly at: number;
  /**
   * Until this request would fit; or, when it fits, until the oldest one leaves the window. For a cost that
   * never fits: until all have left.
   */
  readonly waitMs: number;
}

import { CollectError } from "../errors/collect-error.ts";

/**
 * How far a unit's flight has come:
 *
 * | State       | Its next step                                      |
 * | ----------- | -------------------------------------------------- |
 * | `preparing` | to sign a transaction                              |
 * | `waiting`   | to take the claim, once another replica has signed |
 * | `following` | to find the outcome of another one's transaction   |
 * | `sent`      | to find the outcome of its own transaction         |
 * | `landed`    | to read the amounts of the landed transaction      |
 */
export type FlightState =
  | { readonly kind: "preparing" | "waiting" }
  | { readonly kind: "following" | "sent" | "landed"; readonly signature: string };

/**
 * Returns the error for a caller who times out. `state`: of the unit that the caller waits for;
 * undefined if the collect has not started.
 */
export function lateError(state: FlightState | undefined): CollectError {
  switch (state?.kind) {
    case undefined:
      return new CollectError({ kind: "not-started" });
    case "preparing":
    case "waiting":
      return new CollectError({ kind: "still-running", signature: undefined });
    case "following":
    case "sent":
      return new CollectError({ kind: "still-running", signature: state.signature });
    case "landed":
      return new CollectError({ kind: "landed-unreadable", signature: state.signature });
  }
}

/** The signature of a transaction that may be in flight. */
export function openSignature(state: FlightState): string | undefined {
  return "signature" in state ? state.signature : undefined;
}

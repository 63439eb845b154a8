import { CollectError } from "../errors/collect-error.ts";

/**
 * How far a unit's transaction has come:
 *
 * | State       | The unit's next step                                          |
 * | ----------- | ------------------------------------------------------------- |
 * | `preparing` | to sign a transaction                                         |
 * | `following` | to find the outcome of another replica's transaction, once it |
 * |             | has a signature                                               |
 * | `sent`      | to find the outcome of its own transaction                    |
 * | `landed`    | to read the amounts of the landed transaction                 |
 * | `over`      | none                                                          |
 */
export type FlightState =
  | { readonly kind: "preparing" }
  | { readonly kind: "following"; readonly signature: string | undefined }
  | { readonly kind: "sent"; readonly signature: string }
  | { readonly kind: "landed"; readonly signature: string }
  | { readonly kind: "over" };

/**
 * Returns the error for a caller who times out. `state`: of the unit that the caller waits for;
 * undefined if the collect has not started. After `over` it may have moved fees: what is left to
 * wait for is only whether that was after the request.
 *
 * | State                | Error                                |
 * | -------------------- | ------------------------------------ |
 * | none                 | `not-started`                        |
 * | `preparing`, `over`  | `still-running` without a signature  |
 * | `following`, `sent`  | `still-running`, with the signature  |
 * | `landed`             | `landed-unreadable`                  |
 */
export function lateError(state: FlightState | undefined): CollectError {
  switch (state?.kind) {
    case undefined:
      return new CollectError({ kind: "not-started" });
    case "preparing":
    case "over":
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

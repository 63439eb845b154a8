import { describe, expect, it } from "vitest";
import { lateError, type FlightState } from "../../../src/chain/collect/flight-state.ts";

describe("the error of a caller who times out", () => {
  const signature = "sig";
  it.each<[FlightState | undefined, object]>([
    [undefined, { kind: "not-started" }],
    [{ kind: "preparing" }, { kind: "still-running", signature: undefined }],
    [{ kind: "waiting" }, { kind: "still-running", signature: undefined }],
    [
      { kind: "following", signature },
      { kind: "still-running", signature },
    ],
    [
      { kind: "sent", signature },
      { kind: "still-running", signature },
    ],
    [
      { kind: "landed", signature },
      { kind: "landed-unreadable", signature },
    ],
  ])("follows from the state of the flight: %j", (state, failure) => {
    expect(lateError(state).failure).toEqual(failure);
  });
});

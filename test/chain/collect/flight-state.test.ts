import { describe, expect, it } from "vitest";
import { lateError, type FlightState } from "../../../src/chain/collect/flight-state.ts";
import { isLaterThan } from "../../../src/chain/collect/landing-proofs.ts";
import { addMs, monotonicNow } from "../../../src/time/monotonic.ts";

describe("the error of a caller who times out", () => {
  const signature = "sig";
  it.each<[FlightState | undefined, object]>([
    [undefined, { kind: "not-started" }],
    [{ kind: "over" }, { kind: "still-running", signature: undefined }],
    [{ kind: "preparing" }, { kind: "still-running", signature: undefined }],
    [
      { kind: "following", signature: undefined },
      { kind: "still-running", signature: undefined },
    ],
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

describe("a transaction", () => {
  const start = monotonicNow();
  const at = (ms: number) => addMs(start, ms);
  /** A chain read that began at 10 and saw slot 100. */
  const proofs = [{ at: at(10), slot: 100 }];

  it.each([
    ["is later, if a read that began after the request saw an older slot", 10, 101, true],
    ["is not later, if it had landed by that slot", 10, 100, false],
    ["is not later, if the request came after the read began", 11, 101, false],
    ["is not later, if its slot is unknown", 10, 0, false],
  ])("of another replica %s", (_, askedAt, slot, isLater) => {
    expect(isLaterThan(at(askedAt), { signedAt: undefined, slot }, proofs)).toBe(isLater);
  });

  it("that this replica signed is later than the requests before that, whatever its slot", () => {
    const signed = { signedAt: at(5), slot: 0 };
    expect([4, 5, 6].map((ms) => isLaterThan(at(ms), signed, []))).toEqual([true, true, false]);
  });

  it("is compared with each request, whatever the others get", () => {
    const later = [...proofs, { at: at(20), slot: 101 }];
    const landed = (slot: number) => ({ signedAt: undefined, slot });
    const of = (slot: number) => [15, 20].map((ms) => isLaterThan(at(ms), landed(slot), later));
    expect(of(101)).toEqual([false, false]);
    expect(of(102)).toEqual([true, true]);
  });
});

import { describe, expect, it } from "vitest";
import { codeOf, reasonOf, toError } from "../../src/observability/thrown.ts";

describe("a thrown value", () => {
  it("stays the same if it is an Error, also of a signal", () => {
    const error = new TypeError("wrong");
    expect(toError(error)).toBe(error);
    expect(reasonOf(AbortSignal.abort(error))).toBe(error);
    expect(reasonOf(AbortSignal.abort())).toMatchObject({ name: "AbortError" });
  });

  it("becomes an Error with its text if it is none", () => {
    expect(toError("wrong")).toEqual(new Error("wrong"));
    expect(toError(undefined)).toEqual(new Error("undefined"));
  });

  it("has a code only if it is an Error with a code", () => {
    expect(codeOf(Object.assign(new Error("missing"), { code: "ENOENT" }))).toBe("ENOENT");
    expect(codeOf(new Error("missing"))).toBeUndefined();
    expect(codeOf({ code: "ENOENT" })).toBeUndefined();
    expect(codeOf(null)).toBeUndefined();
  });
});

import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../../src/http/rate-limit/memory-store.ts";

describe("the memory store", () => {
  it("evicts the least recently admitted callers when it is full", () => {
    const take = createMemoryStore({ max: 20, windowMs: 60_000 });
    take("first", 20);
    for (let i = 0; i < 199_999; i++) take(`caller${i}`, 1);
    expect(take("first", 1).counted).toBe(20);
    take("one more", 1);
    expect(take("first", 1).counted).toBe(0);
    expect(take("one more", 1).counted).toBe(1);
  });

  it("does not keep a caller longer for refused requests", () => {
    const take = createMemoryStore({ max: 1, windowMs: 60_000 });
    take("refused", 1);
    for (let i = 0; i < 100_000; i++) take(`caller${i}`, 1);
    take("second", 1);
    take("refused", 1);
    for (let i = 0; i < 99_999; i++) take(`later${i}`, 1);
    expect([take("second", 1).counted, take("refused", 1).counted]).toEqual([1, 0]);
  });
});

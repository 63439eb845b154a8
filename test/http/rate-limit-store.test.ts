import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../src/http/rate-limit-store.ts";

const request = (caller: string, cost = 1) => ({ contextIdentity: caller, fieldIdentity: `request:${cost}` });

describe("the store of the rate limit", () => {
  it("forgets the callers that have been away longest when there are too many", () => {
    const store = createMemoryStore({ max: 20, windowMs: 60_000 });
    store.getForIdentity(request("first", 20));
    for (let i = 0; i < 199_999; i++) store.getForIdentity(request(`caller${i}`));
    expect(store.getForIdentity(request("first"))).toHaveLength(20);
    store.getForIdentity(request("one more"));
    expect(store.getForIdentity(request("first"))).toHaveLength(0);
    expect(store.getForIdentity(request("one more"))).toHaveLength(1);
  });
});

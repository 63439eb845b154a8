import { afterEach, expect, it, vi } from "vitest";
import { createEndpointDoubt } from "../../../src/chain/rpc/endpoint-doubt.ts";
import { toEndpoints } from "../../../src/chain/rpc/rpc-endpoint.ts";

afterEach(() => {
  vi.useRealTimers();
});

it("the last doubted endpoint is asked last, for ten minutes", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const [first, second] = toEndpoints([new URL("http://a"), new URL("http://b")]);
  const doubt = createEndpointDoubt();
  expect(doubt.endpoint()).toBeUndefined();
  doubt.cast(first!);
  doubt.cast(second!);
  vi.advanceTimersByTime(599_999);
  expect(doubt.endpoint()).toBe(second);
  vi.advanceTimersByTime(1);
  expect(doubt.endpoint()).toBeUndefined();
});

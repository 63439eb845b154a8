import { Registry } from "@prometheus-io/client";
import { expect, it, onTestFinished, vi } from "vitest";
import { createStreams } from "../../src/http/streams.ts";

it("streams that end together come back at different times", () => {
  const streams = createStreams({ streamsMax: 8, streamSeconds: 60 }, new Registry());
  const open = ["192.0.2.1", "198.51.100.1", "203.0.113.1"].map((address) =>
    streams.open(address, 1, {
      signal: new AbortController().signal,
      disconnect: () => undefined,
    }),
  );
  streams.close();
  expect(new Set(open.map(({ retryMs }) => retryMs)).size).toBeGreaterThan(1);
});

it("a caller who has not read the last event two seconds after it is disconnected", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const streams = createStreams({ streamsMax: 8, streamSeconds: 60 }, new Registry());
  const disconnect = vi.fn();
  const stream = streams.open("192.0.2.1", 1, { signal: new AbortController().signal, disconnect });
  vi.advanceTimersByTime(60_000);
  expect(stream.signal.aborted).toBe(true);
  expect(stream.retryMs).toBeGreaterThanOrEqual(1_000);
  expect(stream.retryMs).toBeLessThan(10_000);
  vi.advanceTimersByTime(1_999);
  expect(disconnect).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(disconnect).toHaveBeenCalledOnce();
});

import { Registry } from "@prometheus-io/client";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createStreams } from "../../src/http/streams.ts";

const createLimited = (streamsMax = 48) =>
  createStreams({ streamsMax, streamSeconds: 60 }, new Registry());
type Streams = ReturnType<typeof createLimited>;

const open = (streams: Streams, caller: string, accounts = 1) =>
  streams.open(caller, accounts, {
    signal: new AbortController().signal,
    disconnect: () => undefined,
  });
const repeat = (count: number, caller: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => caller(i));

describe("open streams", () => {
  it.each([
    ["20 of one address", 1_000, 1, repeat(25, () => "192.0.2.1"), 20, "192.0.2.2"],
    ["100 accounts of one address", 1_000, 20, repeat(9, () => "192.0.2.1"), 5, "192.0.2.2"],
    ["an eighth of one IPv4 /24", 48, 1, repeat(60, (i) => `192.0.2.${i}`), 6, "192.0.3.1"],
    [
      "an eighth of one IPv6 /48",
      48,
      1,
      repeat(60, (i) => `2001:db8:1:${i}::/64`),
      6,
      "2001:db8:2::/64",
    ],
    [
      "a quarter of one IPv6 /32",
      48,
      2,
      repeat(60, (i) => `2001:db8:${i}::/64`),
      6,
      "2001:db9::/64",
    ],
  ])(
    "are at most %s of %i, in streams of %i accounts",
    (_name, streamsMax, accounts, callers, most, other) => {
      const streams = createLimited(streamsMax);
      const opened = callers.slice(0, most).map((caller) => open(streams, caller, accounts));
      const refusal = expect.objectContaining({
        code: "RATE_LIMITED",
        retryAfterSeconds: expect.toSatisfy((seconds: number) => seconds > 0 && seconds <= 60),
      });
      for (const caller of callers.slice(most))
        expect(() => open(streams, caller, accounts)).toThrow(refusal);
      open(streams, other, accounts);
      opened[0]!.close();
      open(streams, callers[0]!, accounts);
    },
  );

  it("follow at most STREAMS_MAX accounts, from whatever addresses", () => {
    const streams = createLimited();
    for (let i = 0; i < 12; i++) open(streams, `198.51.${i}.1`, 4);
    expect(() => open(streams, "203.0.113.1")).toThrow(
      expect.objectContaining({ code: "SERVICE_BUSY", retryAfterSeconds: 30 }),
    );
  });

  it("free their place when their caller leaves, or has left before", async () => {
    const streams = createLimited(8);
    const leaving = new AbortController();
    const connection = { signal: leaving.signal, disconnect: () => undefined };
    streams.open("192.0.2.1", 1, connection);
    leaving.abort();
    streams.open("192.0.2.1", 1, connection);
    await expect.poll(streams.describe).toEqual({ open: 0, accounts: 0, most: 8 });
  });

  it("are refused for good if they follow more accounts than ever fit, or are switched off", () => {
    expect(() => open(createLimited(), "192.0.2.1", 7)).toThrow("maximum is 6 from one IPv4 /24");
    expect(() => open(createLimited(0), "192.0.2.1")).toThrow("streams switched off");
  });

  it("that end together come back at different times, and no new ones open", () => {
    const streams = createLimited();
    const opened = repeat(3, (i) => `192.0.${i}.1`).map((caller) => open(streams, caller));
    streams.close();
    expect(new Set(opened.map(({ retryMs }) => retryMs)).size).toBeGreaterThan(1);
    expect(() => open(streams, "192.0.2.1")).toThrow("The service is stopping.");
  });
});

it("a caller who has not read the last event two seconds after it is disconnected", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const disconnect = vi.fn();
  const { signal } = new AbortController();
  const stream = createLimited().open("192.0.2.1", 1, { signal, disconnect });
  vi.advanceTimersByTime(60_000);
  expect(stream.signal.aborted).toBe(true);
  expect(stream.retryMs).toBeGreaterThanOrEqual(1_000);
  expect(stream.retryMs).toBeLessThan(10_000);
  vi.advanceTimersByTime(1_999);
  expect(disconnect).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(disconnect).toHaveBeenCalledOnce();
});

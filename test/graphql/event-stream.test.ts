import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { respondEvents } from "../../src/graphql/event-stream.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A stream whose results never come. */
function openSilent() {
  const ended = new AbortController();
  const stream = { signal: ended.signal, close: vi.fn(), sent: vi.fn() };
  const never = { next: () => new Promise<never>(() => undefined) };
  const { body } = respondEvents({ [Symbol.asyncIterator]: () => never }, stream);
  return { body: body!, ended, stream };
}
const readerOf = (body: ReadableStream<BufferSource>) =>
  body.pipeThrough(new TextDecoderStream()).getReader();

it("a silent stream has a comment every 15 s, so that proxies do not close it", async () => {
  const { body, ended } = openSilent();
  const reader = readerOf(body);
  expect((await reader.read()).value).toBe(":\n\n");
  for (let i = 0; i < 3; i++) {
    const next = reader.read();
    await vi.advanceTimersByTimeAsync(15_000);
    expect((await next).value).toBe(":\n\n");
  }
  ended.abort();
  expect(vi.getTimerCount()).toBe(0);
});

it("a stream whose caller does not read gets no more than one comment", async () => {
  const { body, ended } = openSilent();
  const reader = readerOf(body);
  await vi.advanceTimersByTimeAsync(600_000);
  ended.abort();
  let text = "";
  for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
  expect(text.length).toBeLessThan(5 * ":\n\n".length);
});

it("a runtime that cancels the body ends the stream", async () => {
  const { body, stream } = openSilent();
  await body.cancel();
  expect(stream.close).toHaveBeenCalledOnce();
});

import { expect, onTestFinished, vi } from "vitest";
import { eventually } from "../support/eventually.ts";
import { it, world } from "../support/fixtures.ts";
import { createGraphQLEndpoint } from "../../src/graphql/graphql-endpoint.ts";
import type { UseCases } from "../../src/resolvers/use-cases.ts";
import { schema } from "../../src/schema/schema.ts";

const QUERY = `subscription { walletById(socialId: "17") { socialId } }`;

/** Opens a stream of these results, without a connection that would read it. */
async function open(results: AsyncIterable<unknown>, retryMs?: number) {
  let isOpen = true;
  const ending = new AbortController();
  const close = () => {
    isOpen = false;
    ending.abort();
  };
  const scope = {
    addressBlock: "192.0.2.0/24",
    log: { debug: () => undefined },
    admit: () => Promise.resolve(),
    stream: { close, signal: ending.signal, retryMs },
    toCallerError: (error: Error) => error,
  };
  const endpoint = createGraphQLEndpoint({
    schema,
    path: "/graphql",
    useCases: { watchWallets: () => Promise.resolve(results) } as unknown as UseCases,
  });
  const query = new URLSearchParams({ query: QUERY }).toString();
  const request = new Request(`http://localhost/graphql?${query}`, {
    headers: { accept: "text/event-stream" },
  });
  const { body } = await endpoint(request, scope as unknown as Parameters<typeof endpoint>[1]);
  return { body: body!, isOpen: () => isOpen };
}

/** Results that never come. */
const SILENT = {
  [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => undefined) }),
};

it("a silent stream has comments, so that proxies do not close it", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const { body } = await open(SILENT);
  const reader = body.getReader();
  for (let i = 0; i < 3; i++) {
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(":\n\n");
    vi.advanceTimersByTime(12_000);
  }
  await reader.cancel();
});

it("a stream whose caller does not read takes no events", async () => {
  let taken = 0;
  async function* results() {
    for (;;) yield await Promise.resolve({ socialId: String(++taken) });
  }
  const { body } = await open(results());
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(taken).toBeLessThanOrEqual(1);
  await body.cancel();
});

async function* one() {
  yield await Promise.resolve({ socialId: "17" });
}
const EVENT = { data: { walletById: { socialId: "17" } } };

it("a stream that ends by itself ends with `complete`", async () => {
  const { body } = await open(one());
  expect(await new Response(body).text()).toBe(
    `:\n\nevent: next\ndata: ${JSON.stringify(EVENT)}\n\nevent: complete\ndata:\n\n`,
  );
});

it("a stream that the service ends repeats its last event with the time to come back, and has no `complete`", async () => {
  const { body } = await open(one(), 6_543);
  const last = JSON.stringify({ ...EVENT, extensions: { retryAfterSeconds: 7 } });
  expect(await new Response(body).text()).toBe(
    `:\n\nevent: next\ndata: ${JSON.stringify(EVENT)}\n\nretry: 6543\nevent: next\ndata: ${last}\n\n`,
  );
});

it("a stream that the service ends before its first event has only the time to come back", async () => {
  const { body } = await open((async function* () {})(), 6_543);
  expect(await new Response(body).text()).toBe(":\n\nretry: 6543\n\n");
});

it("a runtime that cancels the body ends the stream", async () => {
  const { body, isOpen } = await open(SILENT);
  await body.cancel();
  expect(isOpen()).toBe(false);
});

it("a HEAD of a subscription leaves no stream open", async () => {
  const query = new URLSearchParams({ query: QUERY }).toString();
  const answer = await fetch(`${world.url}/graphql?${query}`, {
    method: "HEAD",
    headers: { accept: "text/event-stream" },
  });
  expect(answer.status).toBe(200);
  await eventually(async () => {
    const { body } = await world.request("/metrics");
    expect(body).toMatch(/^tributary_streams_open 0$/m);
  });
});

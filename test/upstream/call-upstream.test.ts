import dns from "node:dns";
import { setImmediate } from "node:timers/promises";
import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { createLoopbackServer, type LoopbackServer } from "../../src/sandbox/loopback-server.ts";
import { createCallUpstream, type CallUpstream } from "../../src/upstream/http.ts";
import { startLateServer } from "../support/doubles/late-server.ts";
import { startTlsProxy } from "../support/doubles/tls-proxy.ts";
import { eventually } from "../support/eventually.ts";

let registry: Registry;
let callUpstream: CallUpstream;
let server: LoopbackServer;
let url: string;
let received: number;

beforeEach(async () => {
  registry = new Registry();
  callUpstream = createCallUpstream(registry);
  received = 0;
  // Answers at /ok, breaks the connection at /broken, and never answers anything else.
  server = await createLoopbackServer({
    port: 0,
    handle({ url: { pathname }, socket }) {
      received++;
      if (pathname === "/ok") return { status: 200, body: "fine" };
      if (pathname === "/broken") socket.destroy();
      return new Promise(() => undefined);
    },
  });
  ({ url } = server);
});
afterEach(() => server.close());

type Lookup = [
  host: string,
  options: dns.LookupAllOptions,
  found: (error: null, addresses: dns.LookupAddress[]) => void,
];

const call = (path: string, signal = new AbortController().signal) =>
  callUpstream(
    { upstream: "chain", method: "getSlot", url: url + path, headers: {}, signal },
    ({ text }) => text,
  );

async function results(): Promise<Record<string, number>> {
  const { values } = await registry.getSingleMetric("tributary_upstream_calls_total")!.get();
  return Object.fromEntries(values.map(({ labels, value }) => [labels.result, value]));
}

it("returns what `read` makes of the response", async () => {
  expect(await call("/ok")).toBe("fine");
  expect(await results()).toEqual({ ok: 1 });
});

it.each([
  ["a timeout", new DOMException("The operation timed out.", "TimeoutError"), "timeout"],
  ["a caller who has left", new Error("nobody needs the result"), "aborted"],
])(
  "throws the signal's reason when a call in flight is aborted by %s",
  async (_by, reason, result) => {
    const caller = new AbortController();
    const failed = expect(call("/hangs", caller.signal)).rejects.toBe(reason);
    await eventually(() => {
      expect(received).toBe(1);
    });
    caller.abort(reason);
    await failed;
    expect(await results()).toEqual({ [result]: 1 });
  },
);

it("throws the reason of a signal that has already aborted, and sends nothing", async () => {
  const reason = new Error("too late");
  await expect(call("/ok", AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(received).toBe(0);
  expect(await results()).toEqual({ aborted: 1 });
});

it("reports a connection that breaks as unreachable", async () => {
  await expect(call("/broken")).rejects.toThrow("other side closed");
  expect(await results()).toEqual({ unreachable: 1 });
});

it("closes a silent connection with the call that it fails, even if the host offers HTTP/2", async () => {
  const proxy = await startTlsProxy(url);
  onTestFinished(proxy.close);
  url = proxy.url;
  expect(await call("/ok")).toBe("fine");
  // From then on, undici reuses the connection.
  await setImmediate();
  const lost = proxy.silence();
  const caller = new AbortController();
  const failed = expect(call("/ok", caller.signal)).rejects.toThrow("too late");
  await lost;
  caller.abort(new Error("too late"));
  await failed;
  expect(await call("/ok")).toBe("fine");
  expect(proxy.opened()).toBe(2);
});

it("reaches a far host whose other address has no route", async () => {
  const server = await startLateServer();
  const lookup = vi.spyOn(dns, "lookup").mockImplementation(((...[, , found]: Lookup) => {
    found(null, [
      { address: "127.0.0.1", family: 4 },
      { address: "::1", family: 6 },
    ]);
    server.accept();
  }) as typeof dns.lookup);
  onTestFinished(async () => {
    lookup.mockRestore();
    await server.close();
  });
  url = `http://far.example:${server.port}`;
  expect(await call("/")).toBe("fine");
  expect(lookup).toHaveBeenCalledOnce();
});

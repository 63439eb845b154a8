import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  context,
  createContextKey,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  trace,
  TraceFlags,
  type Attributes,
  type Context,
  type Span,
  type SpanOptions,
  type Tracer,
} from "@opentelemetry/api";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openEventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { NEVER_MS, type TestSandbox } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

interface RecordedSpan {
  readonly name: string;
  readonly parent: string | undefined;
  readonly traceId: string;
  readonly spanId: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  hasFailed: boolean;
  hasEnded: boolean;
}

const spans: RecordedSpan[] = [];

/** What the caller's headers have besides the trace. */
const BAGGAGE = createContextKey("baggage");

/**
 * Registers a minimal SDK: spans with parents, a context that is kept across promises, and W3C's
 * trace context with baggage.
 */
function registerSdk(): void {
  const storage = new AsyncLocalStorage<Context>();
  context.setGlobalContextManager({
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, run, self, ...args) => storage.run(active, () => run.call(self, ...args)),
    bind: (_context, target) => target,
    enable: () => expect.unreachable(),
    disable: () => expect.unreachable(),
  });
  propagation.setGlobalPropagator({
    fields: () => ["traceparent", "tracestate", "baggage"],
    inject(active, carrier, { set }) {
      const { traceId, spanId } = trace.getSpanContext(active)!;
      set(carrier, "traceparent", `00-${traceId}-${spanId}-01`);
      set(carrier, "tracestate", "tributary=1");
      set(carrier, "baggage", `${String(active.getValue(BAGGAGE))},own=1`);
    },
    extract(active, carrier, { get }) {
      const [, traceId, spanId] = String(get(carrier, "traceparent")).split("-");
      if (!traceId || !spanId) return active;
      return trace.setSpanContext(active.setValue(BAGGAGE, get(carrier, "baggage")), {
        traceId,
        spanId,
        isRemote: true,
        traceFlags: TraceFlags.SAMPLED,
      });
    },
  });
  const startSpan = (name: string, options: SpanOptions, parentContext: Context): Span => {
    const parent = trace.getSpanContext(parentContext);
    const recorded: RecordedSpan = {
      name,
      parent:
        parent && (spans.find(({ spanId }) => spanId === parent.spanId)?.name ?? parent.spanId),
      traceId: parent?.traceId ?? randomBytes(16).toString("hex"),
      spanId: randomBytes(8).toString("hex"),
      kind: options.kind ?? SpanKind.INTERNAL,
      attributes: { ...options.attributes },
      hasFailed: false,
      hasEnded: false,
    };
    // The service's own reads, such as that of its health, have no parent and come at any time.
    if (parent || recorded.kind === SpanKind.SERVER) spans.push(recorded);
    const span = {
      spanContext: () => ({ ...recorded, traceFlags: TraceFlags.SAMPLED }),
      setStatus: () => ((recorded.hasFailed = true), span),
      setAttribute: (key: string, value: string) => ((recorded.attributes[key] = value), span),
      setAttributes: (attributes: Attributes) => (
        Object.assign(recorded.attributes, attributes),
        span
      ),
      end: () => (recorded.hasEnded = true),
    } as unknown as Span;
    return span;
  };
  const tracer = {
    startSpan,
    startActiveSpan(name: string, options: object, parent: Context, run: (span: Span) => unknown) {
      const span = startSpan(name, options, parent);
      return context.with(trace.setSpan(parent, span), run, undefined, span);
    },
  } as unknown as Tracer;
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
}

/** Forwards POST and GET to `target`, and records the headers of each request but health checks. */
async function startRecorder(target: string) {
  const received: IncomingHttpHeaders[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (!Buffer.concat(chunks).includes('"getSlot"')) received.push(request.headers);
      const { authorization = "", "content-type": type = "" } = request.headers;
      void fetch(target + request.url!, {
        method: request.method!,
        headers: { authorization, "content-type": type },
        body: request.method === "POST" ? Buffer.concat(chunks) : null,
      }).then(async (answer) => {
        response.writeHead(answer.status).end(await answer.text());
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, received, server };
}

let world: World;
let chain: Awaited<ReturnType<typeof startRecorder>>;
let network: Awaited<ReturnType<typeof startRecorder>>;
beforeAll(async () => {
  registerSdk();
  const env = async (sandbox: TestSandbox) => {
    chain = await startRecorder(sandbox.rpc.url);
    network = await startRecorder(sandbox.social.url);
    return { SOLANA_RPC_URL: `${chain.url}/?key=secret`, SOCIAL_API_URL: network.url };
  };
  // A scrape reads the fee payer's balance, which would show in the next tests.
  world = await startWorld(env, { waits: { balanceMaxAgeMs: NEVER_MS } });
  await world.lookup("graduate");
});
beforeEach(() => {
  spans.length = chain.received.length = network.received.length = 0;
});
afterAll(async () => {
  await world.close();
  chain.server.close();
  network.server.close();
});

const named = (name: string) => spans.find((span) => span.name === name)!;
const summary = () =>
  spans.map(({ name, parent, hasFailed, hasEnded }) => ({ name, parent, hasFailed, hasEnded }));
const fine = { hasFailed: false, hasEnded: true };
const SERVER = "GET /wallet/lookup";

describe("spans of a registered OpenTelemetry SDK", () => {
  it("cover a request and its upstream calls, with their parents", async () => {
    await world.lookup("creator");
    expect(summary()).toEqual([
      { name: SERVER, parent: undefined, ...fine },
      { name: "social users by usernames", parent: SERVER, ...fine },
      { name: "chain getMultipleAccounts", parent: SERVER, ...fine },
    ]);
  });

  it("have the scheme that a trusted proxy names, and the method of a refused request", async () => {
    await world.request("/wallet/lookup", {
      method: "POST",
      headers: { "x-forwarded-proto": "https" },
    });
    expect(named("POST /wallet/lookup").attributes).toMatchObject({
      "http.request.method": "POST",
      "http.route": "/wallet/lookup",
      "url.scheme": "https",
      "http.response.status_code": 405,
    });
  });

  it("have the attributes of HTTP and RPC, without handles, query strings and keys", async () => {
    await world.lookup("artist001");
    expect(named(SERVER)).toMatchObject({ kind: SpanKind.SERVER });
    expect(named(SERVER).attributes).toEqual({
      "http.request.method": "GET",
      "http.route": "/wallet/lookup",
      "url.path": "/wallet/lookup",
      "url.scheme": "http",
      "http.response.status_code": 200,
    });
    const call = named("chain getMultipleAccounts");
    expect(call.kind).toBe(SpanKind.CLIENT);
    expect(call.attributes).toEqual({
      "http.request.method": "POST",
      "server.address": "127.0.0.1",
      "server.port": chain.port,
      "rpc.system": "jsonrpc",
      "rpc.method": "getMultipleAccounts",
      "http.response.status_code": 200,
    });
    expect(named("social users by usernames").attributes).toEqual({
      "http.request.method": "GET",
      "server.address": "127.0.0.1",
      "server.port": network.port,
      "http.response.status_code": 200,
    });
    expect(JSON.stringify(spans)).not.toMatch(/artist001|secret|\?/);

    // Parsed, then cached.
    for (let i = 0; i < 2; i++) {
      spans.length = 0;
      await world.graphql('query Mine { wallet(handle: "artist002") { address } }');
      expect(named("POST /graphql").attributes).toEqual({
        "http.request.method": "POST",
        "http.route": "/graphql",
        "url.path": "/graphql",
        "url.scheme": "http",
        "http.response.status_code": 200,
      });
      expect(JSON.stringify(spans)).not.toContain("artist002");
    }
    spans.length = 0;
    const { id } = world.account("creator");
    const query = `subscription Live { walletById(socialId: "${id}") { id } }`;
    const stream = await openEventStream(world.url, { query });
    expect(named("POST /graphql").attributes).toMatchObject({
      "http.response.status_code": 200,
    });
    stream.close();
    // Its reads would show in the next tests.
    await eventually(async () => {
      expect((await world.request("/metrics")).body).toMatch(/^tributary_streams_open 0$/m);
    });
  });

  it("continue the caller's trace, and no upstream gets it", async () => {
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
    const headers = { traceparent, tracestate: "stranger=1", baggage: "stranger=1" };
    await world.lookup("artist003", headers);
    // Not cached.
    await world.request("/graphql?query={__typename}", { headers });
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    expect([named(SERVER).parent, named("GET /graphql").parent]).toEqual([
      "b7ad6b7169203331",
      "b7ad6b7169203331",
    ]);
    expect([network.received.length, chain.received.length]).toEqual([1, 1]);
    for (const received of [...network.received, ...chain.received])
      for (const name of Object.keys(headers)) expect(received).not.toHaveProperty(name);
  });

  it("cover a collect, including its simulation and transaction", async () => {
    await world.collect(world.account("creator").id);
    const callsOfCollect = spans
      .filter(({ parent }) => parent === "POST /collect")
      .map(({ name }) => name);
    expect(callsOfCollect).toEqual(
      expect.arrayContaining(["chain simulateTransaction", "chain sendTransaction"]),
    );
    expect(named("POST /collect").attributes).toEqual({
      "http.request.method": "POST",
      "http.route": "/collect",
      "url.path": "/collect",
      "url.scheme": "http",
      "http.response.status_code": 200,
    });
  });

  it("record which of them failed", async () => {
    world.sandbox.social.faults.add({ times: 2, then: { status: 500, body: "no" } });
    await world.lookup("unlucky");
    expect(spans.map(({ name, hasFailed }) => [name, hasFailed])).toEqual([
      [SERVER, true],
      ["social users by usernames", true],
      ["social users by usernames", true],
    ]);
    expect(named(SERVER).attributes).toMatchObject({
      "http.response.status_code": 503,
      "error.type": "SOCIAL_API_UNAVAILABLE",
    });
    expect(named("social users by usernames").attributes["http.response.status_code"]).toBe(500);
  });

  it("record a failure that GraphQL answers with 200, and no mistake of the caller", async () => {
    world.sandbox.social.faults.add({ times: 2, then: { status: 500, body: "no" } });
    await world.graphql('{ wallet(handle: "unlucky2") { id } }');
    expect(named("POST /graphql")).toMatchObject({
      hasFailed: true,
      attributes: { "http.response.status_code": 200, "error.type": "SOCIAL_API_UNAVAILABLE" },
    });
    spans.length = 0;
    await world.lookup("nobodyatall");
    expect(named(SERVER)).toMatchObject({
      hasFailed: false,
      attributes: { "http.response.status_code": 404 },
    });
  });
});

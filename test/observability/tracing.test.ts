import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import {
  context,
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
import { beforeEach, describe, expect } from "vitest";
import { withWorld, world } from "../support/fixtures.ts";
import { NEVER_MS } from "../support/sandbox.ts";

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

/**
 * Registers a minimal SDK: spans with parents, a context that is kept across promises, and W3C's
 * trace context.
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
    fields: () => ["traceparent"],
    // No upstream gets the trace.
    inject: () => expect.unreachable(),
    extract(active, carrier, { get }) {
      const [, traceId, spanId] = String(get(carrier, "traceparent")).split("-");
      if (!traceId || !spanId) return active;
      return trace.setSpanContext(active, {
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
      end: () => (recorded.hasEnded = true),
    } as unknown as Span;
    return span;
  };
  const tracer = {
    startActiveSpan(name: string, options: object, parent: Context, run: (span: Span) => unknown) {
      const span = startSpan(name, options, parent);
      return context.with(trace.setSpan(parent, span), run, undefined, span);
    },
  } as unknown as Tracer;
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
}

registerSdk();
const it = withWorld(
  ({ rpc }) => Promise.resolve({ SOLANA_RPC_URL: `${rpc.url}/?key=secret` }),
  // A scrape reads the fee payer's balance, which would show in the next tests.
  { waits: { balanceMaxAgeMs: NEVER_MS } },
);
beforeEach(async () => {
  await world.lookup("graduate");
  spans.length = 0;
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
      "server.port": Number(new URL(world.sandbox.rpc.url).port),
      "rpc.system": "jsonrpc",
      "rpc.method": "getMultipleAccounts",
      "http.response.status_code": 200,
    });
    expect(named("social users by usernames").attributes).toEqual({
      "http.request.method": "GET",
      "server.address": "127.0.0.1",
      "server.port": Number(new URL(world.sandbox.social.url).port),
      "http.response.status_code": 200,
    });
    expect(JSON.stringify(spans)).not.toMatch(/artist001|secret|\?/);

    spans.length = 0;
    await world.graphql(
      'query Mine { wallet(handle: "artist002") { address } }',
      {},
      {
        "x-forwarded-proto": "https",
      },
    );
    expect(named("POST /graphql").attributes).toEqual({
      "http.request.method": "POST",
      "http.route": "/graphql",
      "url.path": "/graphql",
      "url.scheme": "https",
      "http.response.status_code": 200,
    });
    expect(JSON.stringify(spans)).not.toContain("artist002");
  });

  it("continue the caller's trace", async () => {
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
    await world.lookup("artist003", headers);
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    expect(named(SERVER).parent).toBe("b7ad6b7169203331");
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

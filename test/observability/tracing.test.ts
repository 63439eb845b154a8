import { AsyncLocalStorage } from "node:async_hooks";
import { context, ROOT_CONTEXT, trace, type Context, type Span, type Tracer } from "@opentelemetry/api";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "../support/world.ts";

interface RecordedSpan {
  readonly name: string;
  readonly parent: string | undefined;
  hasFailed: boolean;
  hasEnded: boolean;
}

const spans: RecordedSpan[] = [];

/** Registers a minimal SDK: spans with parents, and a context that is kept across promises. */
function registerSdk(): void {
  const storage = new AsyncLocalStorage<Context>();
  context.setGlobalContextManager({
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, run, self, ...args) => storage.run(active, () => run.call(self, ...args)),
    bind: (_context, target) => target,
    enable: () => expect.unreachable(),
    disable: () => expect.unreachable(),
  });
  const names = new WeakMap<Span, string>();
  const startSpan: Tracer["startSpan"] = (name, _options, parentContext = context.active()) => {
    const parent = trace.getSpan(parentContext);
    const recorded: RecordedSpan = {
      name,
      parent: parent && names.get(parent),
      hasFailed: false,
      hasEnded: false,
    };
    spans.push(recorded);
    const span = {
      setStatus: () => ((recorded.hasFailed = true), span),
      setAttribute: () => span,
      end: () => (recorded.hasEnded = true),
    } as unknown as Span;
    names.set(span, name);
    return span;
  };
  const tracer = {
    startSpan,
    startActiveSpan(name: string, options: object, run: (span: Span) => unknown) {
      const span = startSpan(name, options);
      return context.with(trace.setSpan(context.active(), span), run, undefined, span);
    },
  } as Tracer;
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
}

let world: World;
beforeAll(async () => {
  registerSdk();
  world = await startWorld();
  await world.lookup("graduate");
});
afterAll(() => world.close());

describe("spans of a registered OpenTelemetry SDK", () => {
  it("cover a request, its resolver and its upstream calls, with their parents", async () => {
    spans.length = 0;
    await world.lookup("creator");
    expect(spans).toEqual([
      { name: "lookup", parent: undefined, hasFailed: false, hasEnded: true },
      { name: "lookUpWallet", parent: "lookup", hasFailed: false, hasEnded: true },
      { name: "social users by usernames", parent: "lookUpWallet", hasFailed: false, hasEnded: true },
      { name: "chain getMultipleAccounts", parent: "lookup", hasFailed: false, hasEnded: true },
    ]);
  });

  it("cover a collect, including its simulation and transaction", async () => {
    spans.length = 0;
    await world.collect(world.account("creator").id);
    const callsOfCollect = spans.filter(({ parent }) => parent === "collectFees").map(({ name }) => name);
    expect(callsOfCollect).toEqual(
      expect.arrayContaining(["chain simulateTransaction", "chain sendTransaction"]),
    );
    expect(spans.find(({ name }) => name === "collectFees")).toMatchObject({
      parent: "collect",
      hasEnded: true,
    });
  });

  it("record which of them failed", async () => {
    spans.length = 0;
    world.sandbox.social.faults.add({ times: 2, then: { status: 500, body: "no" } });
    await world.lookup("unlucky");
    expect(spans.map(({ name, hasFailed }) => [name, hasFailed])).toEqual([
      ["lookup", false],
      ["lookUpWallet", true],
      ["social users by usernames", true],
      ["social users by usernames", true],
    ]);
  });
});

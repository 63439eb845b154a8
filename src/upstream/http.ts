import { SpanKind } from "@opentelemetry/api";
import { Counter, Histogram, type Registry } from "@prometheus-io/client";
import { Agent, request } from "undici";
import { inSpan } from "../observability/tracing.ts";

/** What an upstream answered: its status, and its body as text. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** One call. `upstream` and `method` name it for the operator; there are a few of them. */
export interface UpstreamRequest {
  readonly upstream: "social" | "chain";
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent by POST; absent: GET. */
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Nobody answered, or what came could not be taken: there was no connection, it broke, or far too much came. */
export class BrokenConnection extends Error {
  override readonly name = "BrokenConnection";
}

/** Far above the longest answer that either upstream has reason to give; the rest is not read. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

const DURATION_BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export type CallUpstream = ReturnType<typeof createCallUpstream>;

/** Calls upstreams over HTTP, each in a span and counted, and follows no redirect: no credential goes elsewhere. */
export function createCallUpstream(registry: Registry) {
  const calls = new Counter({
    name: "tributary_upstream_calls_total",
    help: "Calls to the social network and to the chain. result: ok, error (answered, but as an error or unreadably), timeout, unreachable, aborted (another endpoint was faster, or nobody waits any more), or the HTTP status.",
    labelNames: ["upstream", "method", "result"],
    registers: [registry],
  });
  const durations = new Histogram({
    name: "tributary_upstream_call_duration_seconds",
    help: "How long calls to the social network and to the chain took, whatever came of them.",
    labelNames: ["upstream", "method"],
    buckets: DURATION_BUCKETS_SECONDS,
    registers: [registry],
  });
  const agent = new Agent({ maxResponseSize: MAX_ANSWER_BYTES });

  /** With undici's `request`: what `fetch` makes for each call lives long enough to make every collection of garbage slow. */
  async function ask({ url, headers, body, signal }: UpstreamRequest): Promise<UpstreamAnswer> {
    try {
      const answer = await request(url, {
        ...(body === undefined ? {} : { method: "POST", body }),
        headers,
        signal,
        dispatcher: agent,
      });
      return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
    } catch (cause) {
      throw signal.aborted ? signal.reason : new BrokenConnection("the connection failed", { cause });
    }
  }

  /**
   * What `read` makes of the answer, whatever its status. Throws what `read` throws, the signal's reason, or
   * {@link BrokenConnection}.
   */
  return async <T>(call: UpstreamRequest, read: (answer: UpstreamAnswer) => T): Promise<T> => {
    const { upstream, method, signal } = call;
    const startedAt = performance.now();
    let status: number | undefined;
    const tell = (result: string) => {
      calls.inc({ upstream, method, result });
      durations.observe({ upstream, method }, (performance.now() - startedAt) / 1000);
    };
    return inSpan(`${upstream} ${method}`, { kind: SpanKind.CLIENT }, async () => {
      try {
        const answer = await ask(call);
        status = answer.status;
        const value = read(answer);
        tell("ok");
        return value;
      } catch (error) {
        if (status !== undefined) tell(isOk(status) ? "error" : String(status));
        else if (error instanceof BrokenConnection) tell("unreachable");
        else tell(isTimeout(signal.reason) ? "timeout" : "aborted");
        throw error;
      }
    });
  };
}

/** Whether a status says that the call was answered as it was meant. */
export const isOk = (status: number): boolean => status >= 200 && status < 300;

/** Whether this is why a call was given up: its time was up. */
export const isTimeout = (reason: unknown): boolean =>
  reason instanceof Error && reason.name === "TimeoutError";

import { SpanKind } from "@opentelemetry/api";
import { Counter, Histogram, type Registry } from "@prometheus-io/client";
import { Agent, EnvHttpProxyAgent, request } from "undici";
import { reasonOf } from "../observability/thrown.ts";
import { inSpan, type SpanDescription } from "../observability/tracing.ts";
import { monotonicNow, msSince } from "../time/monotonic.ts";

export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** `upstream` and `method` are labels of metrics and traces, so they must have few values. */
export interface UpstreamRequest {
  readonly upstream: "social" | "chain";
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent with POST. Absent: GET. */
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Far above the longest legitimate response of either upstream. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/**
 * How long an idle connection stays open, at most: shorter than the time after which balancers drop
 * idle connections, which is 60 s or more. A host may ask for less.
 */
const KEEP_ALIVE_MS = 30_000;

/**
 * How long to connect to one address of a host before trying the next. Node's 250 ms are too short
 * for a far host, and for a SYN that is lost and repeated after a second. Of the upstreams' default
 * deadline of 5 s, most is left for the next address.
 */
const CONNECT_ATTEMPT_MS = 2_000;

const DURATION_BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export type CallUpstream = ReturnType<typeof createCallUpstream>;

/**
 * Calls upstreams over HTTP, with a span and metrics for each call. Follows no redirects: they
 * could leak credentials.
 */
export function createCallUpstream(registry: Registry) {
  const calls = new Counter({
    name: "tributary_upstream_calls_total",
    help: "Calls to the social network and to the chain. result: ok, error (a 2xx response that holds an error or cannot be read), timeout, unreachable, aborted (another endpoint was faster, or nobody needs the result), or the HTTP status.",
    labelNames: ["upstream", "method", "result"],
    registers: [registry],
  });
  const durations = new Histogram({
    name: "tributary_upstream_call_duration_seconds",
    help: "Duration of calls to the social network and to the chain, failed calls included.",
    labelNames: ["upstream", "method"],
    buckets: DURATION_BUCKETS_SECONDS,
    registers: [registry],
  });
  // As Node itself does, use a proxy only if asked to: some hosts set HTTPS_PROXY for all programs.
  const Dispatcher = process.env.NODE_USE_ENV_PROXY === "1" ? EnvHttpProxyAgent : Agent;
  const agent = new Dispatcher({
    maxResponseSize: MAX_ANSWER_BYTES,
    // With HTTP/2, all calls to a host share one connection, and aborting a call does not close it:
    // once it is dead, all calls fail. With HTTP/1.1, an aborted call closes its own connection.
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    connect: { autoSelectFamilyAttemptTimeout: CONNECT_ATTEMPT_MS },
  });

  /**
   * Returns the result of `read`, for any status. Throws the error of `read`, the signal's reason,
   * or undici's error if the connection could not be made, broke, or the response was too large.
   */
  return async <T>(call: UpstreamRequest, read: (answer: UpstreamAnswer) => T): Promise<T> => {
    const { upstream, method, url, headers, body = null, signal } = call;
    const startedAt = monotonicNow();
    const record = (result: string) => {
      calls.inc({ upstream, method, result });
      durations.observe({ upstream, method }, msSince(startedAt) / 1000);
    };
    return inSpan(describe(call), async (span) => {
      let status: number | undefined;
      try {
        const answer = await request(url, {
          ...{ dispatcher: agent, method: methodOf(call), headers, body, signal },
        });
        const text = await answer.body.text();
        status = answer.statusCode;
        span.setAttribute("http.response.status_code", status);
        const value = read({ status, headers: answer.headers, text });
        record("ok");
        return value;
      } catch (error) {
        if (status !== undefined) record(isOk(status) ? "error" : String(status));
        else if (!signal.aborted) record("unreachable");
        else record(isTimeout(signal.reason) ? "timeout" : "aborted");
        throw status === undefined && signal.aborted ? reasonOf(signal) : error;
      }
    });
  };
}

const methodOf = ({ body }: UpstreamRequest) => (body === undefined ? "GET" : "POST");

/**
 * The span of a call: OpenTelemetry's attributes for HTTP and RPC clients, except the URL, which
 * may hold a key.
 */
function describe(call: UpstreamRequest): SpanDescription {
  const { upstream, method, url } = call;
  const { hostname, port, protocol } = new URL(url);
  return {
    name: `${upstream} ${method}`,
    kind: SpanKind.CLIENT,
    attributes: {
      "http.request.method": methodOf(call),
      "server.address": hostname,
      "server.port": Number(port || (protocol === "https:" ? 443 : 80)),
      ...(upstream === "chain" && { "rpc.system": "jsonrpc", "rpc.method": method }),
    },
  };
}

export const isOk = (status: number): boolean => status >= 200 && status < 300;

export const isTimeout = (reason: unknown): boolean =>
  reason instanceof Error && reason.name === "TimeoutError";

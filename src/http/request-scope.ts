import { randomUUID } from "node:crypto";
import { Counter, Histogram, type Registry } from "@prometheus-io/client";
import type { Logger } from "../observability/log.ts";
import { createLoaders, type LoaderSources } from "../resolvers/loaders.ts";
import type { OpenStream } from "../resolvers/request-scope.ts";
import { logOutage, toCallerError, type Outage } from "../resolvers/to-caller-error.ts";
import { monotonicNow, msSince } from "../time/monotonic.ts";
import type { Decision, RateLimit } from "./rate-limit/rate-limit.ts";
import type { CallerConnection } from "./server.ts";
import type { Streams } from "./streams.ts";

/** The label of a request. `other`: requests that do not count against the rate limit. */
export type Operation = "lookup" | "collect" | "graphql" | "other";

/** The process-wide dependencies of a request. */
export interface RequestScopeNeeds {
  readonly rateLimit: RateLimit;
  readonly loaderSources: LoaderSources;
  readonly streams: Streams;
  readonly registry: Registry;
  readonly log: Logger;
}

export type OpenScope = ReturnType<typeof createOpenScope>;
export type HttpRequestScope = ReturnType<OpenScope>;

/** Safe in logs and headers. */
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;
/** As in a client's address. */
const LOOPBACK = /^(127\.|::\/)/;

/** Opens the scope of each request, and counts and logs the requests. */
export function createOpenScope(needs: RequestScopeNeeds) {
  const registers = [needs.registry];
  const requests = new Counter({
    name: "tributary_requests_total",
    help: "Requests answered, by operation and code: OK, an error code of the contract (for GraphQL that of the first error), a code such as BAD_REQUEST for invalid GraphQL, or ABORTED if the caller disconnected.",
    labelNames: ["operation", "code"],
    registers,
  });
  // Starts at 0, so that Prometheus sees the first burst as an increase.
  requests.inc({ operation: "lookup", code: "SERVICE_BUSY" }, 0);
  const durations = new Histogram({
    name: "tributary_request_duration_seconds",
    help: "Time until the response was ready, by operation.",
    labelNames: ["operation"],
    // In seconds.
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  });
  const lookups = new Counter({
    name: "tributary_account_cache_total",
    help: "Accounts looked up for requests: found in this process's cache (hit) or not (miss).",
    labelNames: ["result"],
    registers,
  });

  return (
    { headers, signal }: Request,
    { client, readBody, disconnect }: CallerConnection,
    operation: Operation = "other",
  ) => {
    const { addressBlock, visitorBlock } = client;
    const startedAt = monotonicNow();
    // That of a trusted proxy, if it sends one: its log and ours then have the same.
    const sentId = (client.isForwarded && headers.get("x-request-id")) || "";
    const requestId = REQUEST_ID.test(sentId) ? sentId : randomUUID();
    const log = needs.log.child({ requestId });
    const loaders = createLoaders(needs.loaderSources, { addressBlock, signal });
    const loggedCauses = new Set();
    /** Requests that do not reach the rate limit count as "other". */
    let countedAs: Operation = "other";
    let code: string | undefined;
    let outage: Outage | undefined;
    let isAnswered = false;

    const scope = {
      ...{ startedAt, requestId, log, signal, readBody, addressBlock, visitorBlock, loaders },
      /** Whether the request comes from this machine, and neither through a proxy nor of a page. */
      isLocal:
        LOOPBACK.test(client.address) && !headers.has("x-forwarded-for") && !headers.has("origin"),
      rateLimit: undefined as Decision | undefined,
      stream: undefined as OpenStream | undefined,
      openStream(accounts: number): OpenStream {
        scope.stream = needs.streams.open(client.address, accounts, { signal, disconnect });
        return scope.stream;
      },
      /** Adds the first outage to the request's log line. Logs those of an open stream separately. */
      toCallerError: (error: unknown) =>
        toCallerError(error, log, loggedCauses, (other) => {
          if (isAnswered) logOutage(log, other);
          else outage ??= other;
        }),
      recordCode(newCode: string) {
        code ??= signal.aborted ? "ABORTED" : newCode;
      },
      async admit(cost: number): Promise<void> {
        countedAs = operation;
        if (client.isTrusted) return;
        scope.rateLimit = await needs.rateLimit(client.address, cost);
        if (scope.rateLimit.refusal) throw scope.rateLimit.refusal;
      },
      /** Counts and logs the request. Returns its code. */
      answered(status: number): string {
        isAnswered = true;
        code ??= status < 400 ? "OK" : "BAD_REQUEST";
        const durationMs = msSince(startedAt);
        const { cached, social: socialReads, chain: chainReads } = loaders.reads;
        lookups.inc({ result: "hit" }, cached);
        lookups.inc({ result: "miss" }, socialReads);
        requests.inc({ operation: countedAs, code });
        durations.observe({ operation: countedAs }, durationMs / 1000);
        const isQuiet = countedAs === "other" || scope.rateLimit?.refusal;
        log[outage ? "warn" : isQuiet ? "debug" : "info"](
          {
            ...outage,
            ...{ operation: countedAs, code, status },
            durationMs: Math.round(durationMs * 100) / 100,
            ...{ cached, socialReads, chainReads },
          },
          "answered",
        );
        return code;
      },
    };
    return scope;
  };
}

import { randomUUID } from "node:crypto";
import type { Logger } from "../observability/log.ts";
import { createLoaders, type Loaders, type LoaderSources } from "../resolvers/loaders.ts";
import type { OpenStream, RequestScope } from "../resolvers/request-scope.ts";
import { logOutage, toCallerError, type Outage } from "../resolvers/to-caller-error.ts";
import { monotonicNow, msSince } from "../time/monotonic.ts";
import type { CallerConnection } from "./caller-connection.ts";
import type { Operation, RequestMetrics } from "./metrics.ts";
import type { Decision, RateLimit } from "./rate-limit/rate-limit.ts";
import type { Streams } from "./streams.ts";

/** The process-wide dependencies of a request. */
export interface RequestScopeNeeds {
  readonly rateLimit: RateLimit;
  readonly loaderSources: LoaderSources;
  readonly streams: Streams;
  readonly metrics: RequestMetrics;
  readonly log: Logger;
}

export interface HttpRequestScope extends RequestScope {
  readonly requestId: string;
  readonly rateLimit: Decision | undefined;
  /** Counts and logs the request. Returns its code. */
  answered(status: number): string;
}

/** Safe in logs and headers. */
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

export function createRequestScope(
  { rateLimit, loaderSources, streams, metrics, log: processLog }: RequestScopeNeeds,
  headers: Headers,
  connection: CallerConnection,
  operation: Operation = "other",
): HttpRequestScope {
  const { client, signal, readBody } = connection;
  const { addressBlock, visitorBlock } = client;
  const startedAt = monotonicNow();
  // That of a trusted proxy, if it sends one: its log and ours then have the same.
  const sentId = client.isForwarded ? headers.get("x-request-id") : null;
  const requestId = sentId !== null && REQUEST_ID.test(sentId) ? sentId : randomUUID();
  const log = processLog.child({ requestId });
  const loggedCauses = new Set();
  let loaders: Loaders | undefined;
  let stream: OpenStream | undefined;
  let decision: Decision | undefined;
  /** Requests that do not reach the rate limit count as "other". */
  let countedAs: Operation = "other";
  let code: string | undefined;
  let outage: Outage | undefined;
  let isAnswered = false;

  /**
   * Adds the first outage to the request's log line. Logs others separately, such as those of an
   * open stream, but not the same one again: a request's reads may be parts of many failed calls.
   */
  function report(other: Outage): void {
    if (isAnswered) logOutage(log, other);
    else if (!outage) outage = other;
    else if (outage.code !== other.code || outage.hint !== other.hint) logOutage(log, other);
  }

  const scope: HttpRequestScope = {
    ...{ startedAt, requestId, log, signal, readBody, addressBlock, visitorBlock },
    get loaders() {
      return (loaders ??= createLoaders(loaderSources, scope));
    },
    get stream() {
      return stream;
    },
    openStream: (accounts) => (stream = streams.open(client.address, accounts, connection)),
    toCallerError: (error) => toCallerError(error, log, loggedCauses, report),
    recordCode(newCode) {
      code ??= newCode;
    },
    get rateLimit() {
      return decision;
    },
    async admit(cost) {
      countedAs = operation;
      if (client.isTrusted) return;
      decision = await rateLimit(client.address, cost);
      if (decision.refusal) throw decision.refusal;
    },
    answered(status) {
      isAnswered = true;
      code ??= status < 400 ? "OK" : "BAD_REQUEST";
      const durationMs = msSince(startedAt);
      const { reads } = scope.loaders;
      metrics.answered(countedAs, code, durationMs, reads);
      const isQuiet = countedAs === "other" || decision?.refusal;
      log[outage ? "warn" : isQuiet ? "debug" : "info"](
        {
          ...outage,
          ...{ operation: countedAs, code, status },
          durationMs: Math.round(durationMs * 100) / 100,
          ...{ cached: reads.cached, socialReads: reads.social, chainReads: reads.chain },
        },
        "answered",
      );
      return code;
    },
  };
  return scope;
}

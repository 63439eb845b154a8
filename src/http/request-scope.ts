import { randomUUID } from "node:crypto";
import type { Logger } from "../observability/log.ts";
import { createLoaders, type LoaderSources } from "../resolvers/loaders.ts";
import type { OpenStream } from "../resolvers/request-scope.ts";
import { logOutage, toCallerError, type Outage } from "../resolvers/to-caller-error.ts";
import { monotonicNow, msSince } from "../time/monotonic.ts";
import type { Operation, RequestMetrics } from "./metrics.ts";
import type { Decision, RateLimit } from "./rate-limit/rate-limit.ts";
import type { CallerConnection } from "./server.ts";
import type { Streams } from "./streams.ts";

/** The process-wide dependencies of a request. */
export interface RequestScopeNeeds {
  readonly rateLimit: RateLimit;
  readonly loaderSources: LoaderSources;
  readonly streams: Streams;
  readonly metrics: RequestMetrics;
  readonly log: Logger;
}

export type HttpRequestScope = ReturnType<typeof createRequestScope>;

/** Safe in logs and headers. */
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;
/** As in a client's address. */
const LOOPBACK = /^(127\.|::\/)/;

export function createRequestScope(
  { rateLimit, loaderSources, streams, metrics, log: processLog }: RequestScopeNeeds,
  { headers, signal }: Request,
  { client, readBody, disconnect }: CallerConnection,
  operation: Operation = "other",
) {
  const { addressBlock, visitorBlock } = client;
  const startedAt = monotonicNow();
  // That of a trusted proxy, if it sends one: its log and ours then have the same.
  const sentId = (client.isForwarded && headers.get("x-request-id")) || "";
  const requestId = REQUEST_ID.test(sentId) ? sentId : randomUUID();
  const log = processLog.child({ requestId });
  const loaders = createLoaders(loaderSources, { addressBlock, signal });
  const loggedCauses = new Set();
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

  const scope = {
    ...{ startedAt, requestId, log, signal, readBody, addressBlock, visitorBlock, loaders },
    /** Whether the request comes from this machine, and neither through a proxy nor of a page. */
    isLocal:
      LOOPBACK.test(client.address) && !headers.has("x-forwarded-for") && !headers.has("origin"),
    rateLimit: undefined as Decision | undefined,
    stream: undefined as OpenStream | undefined,
    openStream(accounts: number): OpenStream {
      scope.stream = streams.open(client.address, accounts, { signal, disconnect });
      return scope.stream;
    },
    toCallerError: (error: unknown) => toCallerError(error, log, loggedCauses, report),
    recordCode(newCode: string) {
      code ??= newCode;
    },
    async admit(cost: number): Promise<void> {
      countedAs = operation;
      if (client.isTrusted) return;
      scope.rateLimit = await rateLimit(client.address, cost);
      if (scope.rateLimit.refusal) throw scope.rateLimit.refusal;
    },
    /** Counts and logs the request. Returns its code. */
    answered(status: number): string {
      isAnswered = true;
      code ??= status < 400 ? "OK" : "BAD_REQUEST";
      const durationMs = msSince(startedAt);
      const { reads } = loaders;
      metrics.answered(countedAs, code, durationMs, reads);
      const isQuiet = countedAs === "other" || scope.rateLimit?.refusal;
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

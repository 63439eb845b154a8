import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { SpanKind } from "@opentelemetry/api";
import { ContractError } from "../contract/contract-error.ts";
import { isErrorCode, rowOf } from "../contract/error-codes.ts";
import { answerError, type Answer } from "../contract/http-messages.ts";
import type { Logger } from "../observability/log.ts";
import { inSpan, markFailed, type SpanDescription } from "../observability/tracing.ts";
import { Loaders, type LoaderSources } from "../resolvers/loaders.ts";
import type { OpenStream, RateLimitState, RequestScope } from "../resolvers/request-scope.ts";
import { logOutage, toCallerError, type Outage } from "../resolvers/to-caller-error.ts";
import { TRUSTED_BLOCK } from "../fairness/budget.ts";
import { toAddressBlock, type Client, type Origin } from "./client-address.ts";
import type { Cors } from "./cors.ts";
import type { Operation, RequestMetrics } from "./metrics.ts";
import type { Decision, RateLimit } from "./rate-limit/rate-limit.ts";
import type { CallerConnection, Streams } from "./streams.ts";
import { monotonicNow, msSince } from "../time/monotonic.ts";

/** The process-wide dependencies of a request. */
export interface RequestScopeNeeds {
  readonly identifyClient: (origin: Origin) => Client;
  readonly cors: Cors;
  readonly rateLimit: RateLimit;
  readonly loaderSources: LoaderSources;
  readonly streams: Streams;
  readonly metrics: RequestMetrics;
  readonly log: Logger;
  /** The header `Link` of REST errors. */
  readonly errorLink?: string;
}

/**
 * Balances change, so responses must not be cached. No browser may execute a response that is
 * opened as a page.
 */
const COMMON_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
};

const NO_READS = { cached: 0, social: 0, chain: 0 };

/**
 * A span with OpenTelemetry's attributes for HTTP servers. `path`: without the query, which may
 * hold a handle.
 */
export function describeRequest(
  method: string,
  path: string,
  route: string | undefined,
  headers: IncomingHttpHeaders,
): SpanDescription {
  return {
    name: route === undefined ? method : `${method} ${route}`,
    kind: SpanKind.SERVER,
    headers,
    attributes: {
      "http.request.method": method,
      "url.path": path,
      "url.scheme": "http",
      ...(route !== undefined && { "http.route": route }),
    },
  };
}

/** Whether an error code means that the service failed. GraphQL's status is 200 even then. */
function isFailure(code: string): boolean {
  return isErrorCode(code) && rowOf(code).status >= 500;
}

export class HttpRequestScope implements RequestScope {
  /** The headers that every response has, errors included. */
  readonly headers: Record<string, string> & { readonly "x-request-id": string };
  readonly startedAt = monotonicNow();
  readonly #needs: RequestScopeNeeds;
  readonly #received: IncomingHttpHeaders;
  readonly #connection: CallerConnection;
  #stream: OpenStream | undefined;
  #loaders: Loaders | undefined;
  #log: Logger | undefined;
  #loggedCauses: Set<unknown> | undefined;
  #identified: Client | undefined;
  #decision: Decision | undefined;
  #isAnswered = false;
  #outage: Outage | undefined;
  #code: string | undefined;

  constructor(
    needs: RequestScopeNeeds,
    receivedHeaders: IncomingHttpHeaders,
    connection: CallerConnection,
  ) {
    this.#needs = needs;
    this.#received = receivedHeaders;
    this.#connection = connection;
    this.headers = {
      ...COMMON_HEADERS,
      ...needs.cors.headers(receivedHeaders),
      "x-request-id": randomUUID(),
    };
  }

  get signal(): AbortSignal {
    return this.#connection.signal;
  }

  get addressBlock(): string {
    const { address, isTrusted } = this.#client;
    return isTrusted ? TRUSTED_BLOCK : toAddressBlock(address);
  }

  get visitorBlock(): string | undefined {
    const { visitor } = this.#client;
    return visitor && toAddressBlock(visitor);
  }

  get loaders(): Loaders {
    return (this.#loaders ??= new Loaders(this.#needs.loaderSources, this));
  }

  renewLoaders(): Loaders {
    return (this.#loaders = this.loaders.renew());
  }

  get stream(): OpenStream | undefined {
    return this.#stream;
  }

  openStream(accounts: number): OpenStream {
    const { address } = this.#client;
    return (this.#stream = this.#needs.streams.open(address, accounts, this.#connection));
  }

  get #client(): Client {
    const { remoteAddress } = this.#connection;
    const forwardedFor = this.#received["x-forwarded-for"] as string | undefined;
    return (this.#identified ??= this.#needs.identifyClient({ remoteAddress, forwardedFor }));
  }

  get log(): Logger {
    return (this.#log ??= this.#needs.log.child({ requestId: this.headers["x-request-id"] }));
  }

  toCallerError(error: unknown): ContractError {
    return toCallerError(
      error,
      this.log,
      (this.#loggedCauses ??= new Set()),
      this.#report.bind(this),
    );
  }

  /**
   * Adds the first outage to the request's log line. Logs others separately, such as those of an
   * open stream, but not the same one again: a request's reads may be parts of many failed calls.
   */
  #report(outage: Outage): void {
    const first = this.#outage;
    if (this.#isAnswered) logOutage(this.log, outage);
    else if (!first) this.#outage = outage;
    else if (first.code !== outage.code || first.hint !== outage.hint) logOutage(this.log, outage);
  }

  recordCode(code: string): void {
    this.#code ??= code;
  }

  get rateLimit(): RateLimitState | undefined {
    return this.#decision;
  }

  async admit(cost: number): Promise<void> {
    const { address, isTrusted } = this.#client;
    if (isTrusted) return;
    const decision = await this.#needs.rateLimit(address, cost);
    this.#decision = decision;
    this.headers["ratelimit-policy"] = decision.policyHeader;
    this.headers.ratelimit = decision.rateLimitHeader;
    if (decision.refusal) throw decision.refusal;
  }

  #refuseOrigin(): Answer {
    const error = new ContractError("ORIGIN_NOT_ALLOWED");
    this.recordCode(error.code);
    return answerError(error);
  }

  /** Runs the request in a span, then counts and logs it. */
  async answer(
    operation: Operation,
    describe: () => SpanDescription,
    run: () => Promise<Answer>,
  ): Promise<Answer> {
    const answer = await inSpan(describe, async (span) => {
      const isAllowed = this.#needs.cors.isAllowed(this.#received, operation !== "other");
      const answer = isAllowed ? await run() : this.#refuseOrigin();
      span?.setAttribute("http.response.status_code", answer.status);
      const code = this.#code;
      if (span && code !== undefined && isFailure(code)) markFailed(span, code);
      return answer;
    });
    return this.record(operation, answer);
  }

  /** Counts and logs the request, and returns its answer. */
  record(operation: Operation, answer: Answer): Answer {
    const durationMs = msSince(this.startedAt);
    const requestId = this.headers["x-request-id"];
    const { status } = answer;
    if (status >= 400 && operation !== "graphql" && this.#needs.errorLink !== undefined)
      this.headers.link = this.#needs.errorLink;
    const code = this.#code ?? (status < 400 ? "OK" : "BAD_REQUEST");
    // The rate limit identifies the caller. Requests that do not reach it count as "other".
    const label = this.#identified === undefined ? "other" : operation;
    const reads = this.#loaders?.reads ?? NO_READS;
    this.#needs.metrics.answered(label, code, durationMs, reads);
    const duration = Math.round(durationMs * 100) / 100;
    const { cached, social, chain } = reads;
    this.#isAnswered = true;
    const line = { requestId, operation: label, code, status, durationMs: duration };
    if (this.#outage) {
      const { cause, hint } = this.#outage;
      const counts = { cached, socialReads: social, chainReads: chain };
      this.#needs.log.warn({ ...line, ...counts, cause, hint }, "answered");
    } else if (label === "other" || this.#decision?.refusal) {
      this.#needs.log.debug(line, "answered");
    } else {
      const counts = { cached, socialReads: social, chainReads: chain };
      this.#needs.log.info({ ...line, ...counts }, "answered");
    }
    return answer;
  }
}

import { randomUUID } from "node:crypto";
import { SpanKind } from "@opentelemetry/api";
import type { ContractError } from "../contract/contract-error.ts";
import { isErrorCode, rowOf } from "../contract/error-codes.ts";
import type { ReadBody } from "../contract/http-messages.ts";
import type { Logger } from "../observability/log.ts";
import { inSpan, markFailed, type SpanDescription } from "../observability/tracing.ts";
import { createLoaders, type Loaders, type LoaderSources } from "../resolvers/loaders.ts";
import type { OpenStream, RateLimitState, RequestScope } from "../resolvers/request-scope.ts";
import { logOutage, toCallerError, type Outage } from "../resolvers/to-caller-error.ts";
import { TRUSTED_BLOCK } from "../fairness/budget.ts";
import type { CallerConnection } from "./caller-connection.ts";
import { toAddressBlock } from "./client-address.ts";
import type { Cors } from "./cors.ts";
import type { Operation, RequestMetrics } from "./metrics.ts";
import type { Decision, RateLimit } from "./rate-limit/rate-limit.ts";
import type { Streams } from "./streams.ts";
import { monotonicNow, msSince } from "../time/monotonic.ts";

/** The process-wide dependencies of a request. */
export interface RequestScopeNeeds {
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
 * opened as a page. A route may replace these headers.
 */
const COMMON_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
};

/** Safe in logs and headers. */
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;
/** As in a client's address. */
const LOOPBACK = /^(127\.|::\/)/;

const NO_READS = { cached: 0, social: 0, chain: 0 };

/** Whether an error code means that the service failed. GraphQL's status is 200 even then. */
function isFailure(code: string): boolean {
  return isErrorCode(code) && rowOf(code).status >= 500;
}

export class HttpRequestScope implements RequestScope {
  readonly startedAt = monotonicNow();
  /** That of a trusted proxy, if it sends one: its log and ours then have the same. */
  readonly requestId: string;
  readonly log: Logger;
  readonly #needs: RequestScopeNeeds;
  readonly #received: Headers;
  readonly #connection: CallerConnection;
  readonly #operation: Operation;
  readonly #loggedCauses = new Set();
  #stream: OpenStream | undefined;
  #loaders: Loaders | undefined;
  /** Whether the request counts against the caller's rate limit. */
  #isCounted = false;
  #decision: Decision | undefined;
  #isComplete = false;
  #outage: Outage | undefined;
  #code: string | undefined;

  constructor(
    needs: RequestScopeNeeds,
    receivedHeaders: Headers,
    connection: CallerConnection,
    operation: Operation = "other",
  ) {
    this.#needs = needs;
    this.#received = receivedHeaders;
    this.#connection = connection;
    this.#operation = operation;
    const sentId = this.#forwarded("x-request-id");
    this.requestId = sentId !== null && REQUEST_ID.test(sentId) ? sentId : randomUUID();
    this.log = needs.log.child({ requestId: this.requestId });
  }

  /** A header that only a trusted proxy may set. */
  #forwarded(name: string): string | null {
    return this.#connection.client.isForwarded ? this.#received.get(name) : null;
  }

  /** Whether the request comes from this machine, and neither through a proxy nor of a page. */
  get isLocal(): boolean {
    const { client } = this.#connection;
    const isElsewhere = this.#received.has("x-forwarded-for") || this.#received.has("origin");
    return LOOPBACK.test(client.address) && !isElsewhere;
  }

  get signal(): AbortSignal {
    return this.#connection.signal;
  }

  /** As sent. */
  get path(): string {
    return this.#connection.path;
  }

  get readBody(): ReadBody {
    return this.#connection.readBody;
  }

  get addressBlock(): string {
    const { address, isTrusted } = this.#connection.client;
    return isTrusted ? TRUSTED_BLOCK : toAddressBlock(address);
  }

  get visitorBlock(): string | undefined {
    const { visitor } = this.#connection.client;
    return visitor && toAddressBlock(visitor);
  }

  get loaders(): Loaders {
    return (this.#loaders ??= createLoaders(this.#needs.loaderSources, this));
  }

  get stream(): OpenStream | undefined {
    return this.#stream;
  }

  openStream(accounts: number): OpenStream {
    const { address } = this.#connection.client;
    return (this.#stream = this.#needs.streams.open(address, accounts, this.#connection));
  }

  toCallerError(error: unknown): ContractError {
    return toCallerError(error, this.log, this.#loggedCauses, (outage) => {
      this.#report(outage);
    });
  }

  /**
   * Adds the first outage to the request's log line. Logs others separately, such as those of an
   * open stream, but not the same one again: a request's reads may be parts of many failed calls.
   */
  #report(outage: Outage): void {
    const first = this.#outage;
    if (this.#isComplete) logOutage(this.log, outage);
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
    const { address, isTrusted } = this.#connection.client;
    this.#isCounted = true;
    if (isTrusted) return;
    this.#decision = await this.#needs.rateLimit(address, cost);
    if (this.#decision.refusal) throw this.#decision.refusal;
  }

  /** Runs the request in a span, and completes its response. */
  run(
    method: string,
    route: string | undefined,
    respond: () => Promise<Response>,
  ): Promise<Response> {
    const describe = () => this.#describe(method, route);
    return inSpan(describe, async (span) => {
      const response = this.complete(await respond());
      span?.setAttribute("http.response.status_code", response.status);
      if (span && this.#code !== undefined && isFailure(this.#code)) markFailed(span, this.#code);
      return response;
    });
  }

  /** A span with OpenTelemetry's attributes for HTTP servers, without the query's handles. */
  #describe(method: string, route: string | undefined): SpanDescription {
    return {
      name: route === undefined ? method : `${method} ${route}`,
      kind: SpanKind.SERVER,
      headers: Object.fromEntries(this.#received),
      attributes: {
        "http.request.method": method,
        "url.path": this.path,
        "url.scheme": this.#forwarded("x-forwarded-proto") === "https" ? "https" : "http",
        ...(route !== undefined && { "http.route": route }),
      },
    };
  }

  /** Adds the headers that every response has. Counts and logs the request. */
  complete(response: Response): Response {
    this.#isComplete = true;
    const { headers, status } = response;
    for (const [name, value] of Object.entries(COMMON_HEADERS))
      if (!headers.has(name)) headers.set(name, value);
    for (const [name, value] of Object.entries(this.#needs.cors.headers(this.#received)))
      headers.append(name, value);
    headers.set("x-request-id", this.requestId);
    if (this.#decision) {
      headers.set("ratelimit-policy", this.#decision.policyHeader);
      headers.set("ratelimit", this.#decision.rateLimitHeader);
    }
    const { errorLink } = this.#needs;
    if (status >= 400 && this.#operation !== "graphql" && errorLink !== undefined)
      headers.set("link", errorLink);
    this.#record(status);
    return response;
  }

  #record(status: number): void {
    const { log, metrics } = this.#needs;
    const durationMs = msSince(this.startedAt);
    const code = this.#code ?? (status < 400 ? "OK" : "BAD_REQUEST");
    // Requests that do not reach the rate limit count as "other".
    const operation = this.#isCounted ? this.#operation : "other";
    const reads = this.#loaders?.reads ?? NO_READS;
    metrics.answered(operation, code, durationMs, reads);
    const { cached, social: socialReads, chain: chainReads } = reads;
    const duration = Math.round(durationMs * 100) / 100;
    const { requestId } = this;
    const line = { requestId, operation, code, status, durationMs: duration };
    const counts = { cached, socialReads, chainReads };
    if (this.#outage) {
      const { cause, hint } = this.#outage;
      log.warn({ ...line, ...counts, cause, hint }, "answered");
    } else if (operation === "other" || this.#decision?.refusal) {
      log.debug(line, "answered");
    } else {
      log.info({ ...line, ...counts }, "answered");
    }
  }
}

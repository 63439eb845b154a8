import { randomUUID } from "node:crypto";
import { SpanKind } from "@opentelemetry/api";
import type { Logger } from "../observability/log.ts";
import type { Reads } from "../resolvers/request-scope.ts";
import type { GraphQLCall } from "../graphql/endpoint.ts";
import { inSpan } from "../observability/tracing.ts";
import type { Origin } from "./client-address.ts";
import type { Operation, RequestMetrics } from "./metrics.ts";
import type { RateLimit } from "./rate-limit/rate-limit.ts";

/** What calls need of the process. */
export interface CallNeeds {
  readonly clientAddress: (origin: Origin) => string;
  readonly rateLimit: RateLimit;
  readonly metrics: RequestMetrics;
  readonly log: Logger;
}

/**
 * The API is public and knows no credentials, so any page may call it and read what it answers. But no answer
 * is to be taken for what it is not, or to do anything if it is; pages have a policy of their own.
 */
const COMMON_HEADERS = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "Retry-After, RateLimit, RateLimit-Policy, X-Request-Id",
};

/** What there is of a request beside the request itself: its id, its caller's budget, what is told of it. */
export class Call implements GraphQLCall {
  /** What its answer says, whatever comes of it. */
  readonly headers: Record<string, string>;
  readonly reads: Reads = { cached: 0, social: 0, chain: 0 };
  readonly #needs: CallNeeds;
  readonly #origin: Origin;
  readonly #waiting: { readonly signal: AbortSignal };
  #caller: string | undefined;
  #takenAt: number | undefined;
  #code: string | undefined;
  #log: Logger | undefined;

  /** `waiting` has the signal that aborts when nobody waits for the answer any more. */
  constructor(needs: CallNeeds, origin: Origin, waiting: { readonly signal: AbortSignal }) {
    this.#needs = needs;
    this.#origin = origin;
    this.#waiting = waiting;
    this.headers = { ...COMMON_HEADERS, "x-request-id": randomUUID() };
  }

  get signal(): AbortSignal {
    return this.#waiting.signal;
  }

  /** Names the request in each line. */
  get log(): Logger {
    return (this.#log ??= this.#needs.log.child({ requestId: this.headers["x-request-id"] }));
  }

  note(code: string): void {
    this.#code ??= code;
  }

  async admit(cost: number): Promise<void> {
    this.#caller ??= this.#needs.clientAddress(this.#origin);
    const { at, policy, standing, refusal } = await this.#needs.rateLimit(this.#caller, cost, this.#takenAt);
    this.#takenAt = at;
    this.headers["ratelimit-policy"] = policy;
    this.headers.ratelimit = standing;
    if (!refusal) return;
    this.#needs.metrics.refused();
    throw refusal;
  }

  /** Answers in a span, and tells the metrics and the log what came of it. A string is the JSON of a 200. */
  async answer<A extends Response | string>(operation: Operation, run: () => Promise<A>): Promise<A> {
    const startedAt = performance.now();
    const answer = await inSpan(operation, { kind: SpanKind.SERVER }, run);
    const durationMs = performance.now() - startedAt;
    const status = typeof answer === "string" ? 200 : answer.status;
    const code = this.#code ?? (status < 400 ? "OK" : "BAD_REQUEST");
    // What nobody's budget was asked for, a preflight or a page, is no operation, wherever it came.
    const counted = this.#caller === undefined ? "other" : operation;
    this.#needs.metrics.answered(counted, code, durationMs, this.reads);
    const { cached, social, chain } = this.reads;
    this.#needs.log[counted === "other" ? "debug" : "info"](
      {
        requestId: this.headers["x-request-id"],
        operation: counted,
        code,
        status,
        durationMs: Math.round(durationMs * 100) / 100,
        cached,
        socialReads: social,
        chainReads: chain,
      },
      "answered",
    );
    return answer;
  }
}

import type { ContractError } from "../contract/contract-error.ts";
import type { ReadBody } from "../contract/http-messages.ts";
import type { Logger } from "../observability/log.ts";
import type { Loaders } from "./loaders.ts";
import type { MonotonicTime } from "../time/monotonic.ts";

/**
 * A stream of events to one caller. Ends after a disconnect, after a time limit, and when the
 * service stops.
 */
export interface OpenStream {
  /** Aborts when the stream ends. */
  readonly signal: AbortSignal;
  /**
   * When the caller should subscribe again. Set before `signal` aborts because the service ends the
   * stream.
   */
  readonly retryMs: number | undefined;
  close(): void;
}

/** The caller's rate limit after a request has been counted or refused. */
export interface RateLimitState {
  /** The most requests in a window. */
  readonly limit: number;
  /** The most requests that one request may count as. */
  readonly maxCost: number;
  /** How many requests this request counts as. */
  readonly cost: number;
  /** How many more requests would pass now. */
  readonly remaining: number;
  /**
   * Whole seconds, at least 1, until `remaining` grows or, after a refusal, until this request
   * would pass.
   */
  readonly resetSeconds: number;
}

/** One request, from its arrival to its response. */
export interface RequestScope {
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
  readonly readBody: ReadBody;
  /** The timeout of all collects of the request starts here. */
  readonly startedAt: MonotonicTime;
  /**
   * The caller's IPv4 /24 or IPv6 /48, or TRUSTED_BLOCK for a trusted caller. All callers of a
   * block share budgets.
   */
  readonly addressBlock: string;
  /**
   * The address block of the person for whom a trusted caller acts, if known. For other callers:
   * `addressBlock`.
   */
  readonly visitorBlock: string | undefined;
  readonly loaders: Loaders;
  /** The request's stream, once it is open. */
  readonly stream: OpenStream | undefined;
  /** Adds the request's id to each line. */
  readonly log: Logger;
  /** Undefined for a request that is not counted. */
  readonly rateLimit: RateLimitState | undefined;
  /**
   * Takes `cost` requests from the rate limit; call it once. Fails with RATE_LIMITED.
   */
  admit(cost: number): Promise<void>;
  /**
   * Opens the request's stream, which follows this many accounts. Throws ContractError RATE_LIMITED
   * or SERVICE_BUSY.
   */
  openStream(accounts: number): OpenStream;
  /** Converts an error to the error that the caller sees. Logs its cause, once per request. */
  toCallerError(error: unknown): ContractError;
  /**
   * Records the response's code for the log and the metrics: ABORTED if the caller has disconnected.
   * Only the first call has an effect.
   */
  recordCode(code: string): void;
}

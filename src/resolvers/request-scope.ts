import type { ContractError } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import type { Loaders } from "./loaders.ts";

/** A stream of events to one caller. It ends when the caller disconnects, when its time is up or the service stops. */
export interface OpenStream {
  /** Aborts when the stream ends. */
  readonly signal: AbortSignal;
  /** Ends it early. */
  close(): void;
  /** Counts an event that was sent. */
  sent(): void;
}

/** The caller's rate limit after a request has been counted. */
export interface RateLimitState {
  /** The most requests in a window. */
  readonly limit: number;
  /** The requests that this one counts as. */
  readonly cost: number;
  /** The requests that would pass now. */
  readonly remaining: number;
  /** Until the oldest counted request leaves the window: whole seconds, at least 1. */
  readonly resetSeconds: number;
}

/** One request, from its arrival to its response. */
export interface RequestScope {
  /** Aborts when the caller disconnects. Requests of a connection share it: remove listeners. */
  readonly signal: AbortSignal;
  /** In `performance.now()` time. The timeout of all collects of the request starts here. */
  readonly startedAt: number;
  /** The caller's IPv4 /24 or IPv6 /48: callers share budgets by block. */
  readonly addressBlock: string;
  /** The block of the person whom the caller acts for; undefined if a trusted caller does not name it. */
  readonly visitorBlock: string | undefined;
  readonly loaders: Loaders;
  /** The request's stream, once it is open. */
  readonly stream: OpenStream | undefined;
  /** Adds the request's id to each line. */
  readonly log: Logger;
  /** Undefined for a request that is not counted. */
  readonly rateLimit: RateLimitState | undefined;
  /**
   * Takes `cost` requests from the caller's rate limit; a second call, with the total cost, takes the rest. Throws or
   * rejects with ContractError RATE_LIMITED, and then takes nothing more.
   */
  admit(cost: number): Promise<void> | undefined;
  /**
   * Takes calls to the chain from the share of the caller's block, for an operation that reads many balances. Rejects
   * with ContractError SERVICE_BUSY if it has not so many.
   */
  takeChainCalls(calls: number): Promise<void>;
  /** Opens the request's stream. Throws ContractError RATE_LIMITED or SERVICE_BUSY. */
  openStream(): OpenStream;
  /** Replaces the loaders, so that the next event of a stream reads anew. Returns the new ones. */
  renewLoaders(): Loaders;
  /** Converts an error to the one that the caller sees. Logs its cause, once per request. */
  toCallerError(error: unknown): ContractError;
  /** Records the response's code for the log and the metrics. Only the first call has an effect. */
  recordCode(code: string): void;
}

import type { ContractError } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import type { Loaders } from "./loaders.ts";

/** One request, from its arrival to its response. */
export interface RequestScope {
  /** Aborts when the caller disconnects. Created on first use, so read it only where you wait. */
  readonly signal: AbortSignal;
  /** In `performance.now()` time. The timeout of all collects of the request starts here. */
  readonly startedAt: number;
  /** The caller's IPv4 /24 or IPv6 /48: callers share budgets by block. */
  readonly addressBlock: string;
  readonly loaders: Loaders;
  /** Adds the request's id to each line. */
  readonly log: Logger;
  /**
   * Takes `cost` requests from the caller's rate limit. A second call replaces the first: pass the total cost.
   * Throws ContractError RATE_LIMITED, and then takes nothing.
   */
  admit(cost: number): Promise<void>;
  /** Converts an error to the one that the caller sees. Logs its cause, once per request. */
  toCallerError(error: unknown): ContractError;
  /** Records the response's code for the log and the metrics. Only the first call has an effect. */
  recordCode(code: string): void;
}

import type { ContractError } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import type { Loaders } from "./loaders.ts";

/** One request, from its arrival to its answer. */
export interface RequestScope {
  /** Aborts when nobody waits for the answer any more. Created on first use: read it only where you wait. */
  readonly signal: AbortSignal;
  /** In `performance.now()`: all collects of the request share the time from here. */
  readonly startedAt: number;
  readonly loaders: Loaders;
  /** Names the request in each line. */
  readonly log: Logger;
  /**
   * Takes `cost` requests from the caller's rate limit. A second call with a higher cost takes that in all.
   * Throws ContractError RATE_LIMITED, and then takes nothing.
   */
  admit(cost: number): Promise<void>;
  /** The error that the caller sees. Its cause is logged, once for each request. */
  toCallerError(error: unknown): ContractError;
  /** Records the code of the answer for the log and the metrics; the first one counts. */
  recordCode(code: string): void;
}

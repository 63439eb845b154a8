import type { Logger } from "./log.ts";

/**
 * Every code that a caller can get, with its HTTP status and the message it carries when the place that
 * throws it says nothing more precise. The first three groups are sections 4 and 7 of the specification.
 */
export const ERROR_TABLE = {
  HANDLE_REQUIRED: { status: 400, message: "The query parameter handle is required: ?handle=<name>." },
  INVALID_HANDLE: { status: 400, message: "The handle must be 1-15 alphanumeric characters." },
  SOCIAL_NOT_FOUND: { status: 404, message: "The social-network account does not exist, or is suspended." },
  SOCIAL_RATE_LIMITED: { status: 429, message: "The social network's rate limit was hit. Try again later." },
  SOCIAL_API_UNAVAILABLE: {
    status: 503,
    message: "The social network's interface is temporarily unavailable. Try again later.",
  },
  SERVICE_BUSY: { status: 503, message: "Too many lookups are waiting. Try again in 30 seconds." },
  LOOKUP_FAILED: { status: 500, message: "The lookup failed unexpectedly. Try again later." },

  INVALID_SOCIAL_ID: {
    status: 400,
    message: "socialId must be a JSON string of 1 to 20 decimal digits, at most 18446744073709551615.",
  },
  NOTHING_TO_COLLECT: { status: 400, message: "The vault holds no fees to collect." },
  INSUFFICIENT_FUNDS: {
    status: 500,
    message: "The service's fee-paying wallet cannot pay for the transaction at the moment.",
  },
  COLLECT_FAILED: { status: 500, message: "The fees could not be collected. Try again later." },

  RATE_LIMITED: { status: 429, message: "Too many requests from this address. Try again later." },

  NOT_FOUND: { status: 404, message: "There is nothing at this path." },
  METHOD_NOT_ALLOWED: { status: 405, message: "This path does not take this method." },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** What an error may tell beside its code. */
export interface ErrorDetails {
  /** Replaces the table's message; it is shown to callers. */
  readonly message?: string;
  /** Whole seconds, at least 1: becomes `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** What went wrong, for the log; no caller ever sees it. */
  readonly cause?: unknown;
}

/** The one error that meets callers: a code of the contract, and what there is to say about it. */
export class ContractError extends Error {
  override readonly name = "ContractError";
  readonly code: ErrorCode;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, { message, retryAfterSeconds, cause }: ErrorDetails = {}) {
    super(message ?? ERROR_TABLE[code].message, { cause });
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The headers that an error brings: `Retry-After` in whole seconds, or none. */
export function errorHeaders(error: ContractError): Record<string, string> {
  return error.retryAfterSeconds === undefined ? {} : { "retry-after": String(error.retryAfterSeconds) };
}

/** A duration as `Retry-After` gives it: whole seconds, rounded up, at least 1. */
export function toRetryAfterSeconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1000));
}

/**
 * The error to show for whatever went wrong: a {@link ContractError} as it is, anything else as
 * LOOKUP_FAILED, since all that fails in a collect is a {@link ContractError} already. What only the
 * operator can understand goes to the log, once, here.
 */
export function toCallerError(error: unknown, log: Logger): ContractError {
  if (!(error instanceof ContractError)) {
    if (isAbort(error)) log.debug("a caller went away");
    else log.error({ err: error }, "a request failed unexpectedly");
    return new ContractError("LOOKUP_FAILED", { cause: error });
  }
  if (error.cause !== undefined) log.warn({ err: error.cause, code: error.code }, error.message);
  return error;
}

/** What a read rejects with when its request has ended: nobody is there to be told. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

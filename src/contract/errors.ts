import type { Logger } from "../observability/log.ts";

interface ErrorRow {
  readonly status: number;
  readonly message: string;
  /** Whole seconds, at least 1, unless the place that throws it knows better. */
  readonly retryAfterSeconds?: number;
}

/**
 * Every code that a caller can get, with its HTTP status and the message it carries when the place that
 * throws it says nothing more precise: what is wrong, and what the caller can do. The first three groups
 * are sections 4 and 7 of the specification.
 */
export const ERROR_TABLE = {
  HANDLE_REQUIRED: { status: 400, message: "The query parameter handle is required: ?handle=<name>." },
  INVALID_HANDLE: { status: 400, message: "The handle must be 1-15 alphanumeric characters." },
  SOCIAL_NOT_FOUND: {
    status: 404,
    message: "The social-network account does not exist, or is suspended. Check its spelling.",
  },
  SOCIAL_RATE_LIMITED: {
    status: 429,
    message:
      "The social network's rate limit was hit. Try again after the seconds in Retry-After (GraphQL: extensions.retryAfterSeconds).",
  },
  SOCIAL_API_UNAVAILABLE: {
    status: 503,
    message: "The social network's interface is temporarily unavailable. Try again in a minute.",
  },
  SERVICE_BUSY: {
    status: 503,
    message: "Too many lookups are waiting. Try again in 30 seconds.",
    retryAfterSeconds: 30,
  },
  LOOKUP_FAILED: {
    status: 500,
    message:
      "The lookup failed unexpectedly. Try again in a minute; if it fails again, tell the service's operator the X-Request-Id of this answer.",
  },

  INVALID_SOCIAL_ID: { status: 400, message: "The socialId is not the numeric id of an account." },
  NOTHING_TO_COLLECT: {
    status: 400,
    message:
      "The vault holds no fees, or too little to be worth a transaction. Collect again after more trading.",
  },
  INSUFFICIENT_FUNDS: {
    status: 500,
    message:
      "The service's fee-paying wallet cannot pay for the transaction at the moment. Nothing was moved: try again later.",
  },
  COLLECT_FAILED: {
    status: 500,
    message:
      "The fees could not be collected. Try again in a minute; if it fails again, tell the service's operator the X-Request-Id of this answer.",
  },

  RATE_LIMITED: {
    status: 429,
    message: "Too many requests from this address. Try again after the seconds in Retry-After.",
  },

  NOT_FOUND: { status: 404, message: "There is nothing at this path." },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: "This path does not take this method. The header Allow names those that it takes.",
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** What an error may tell beside its code. */
export interface ErrorDetails {
  /** Replaces the table's message; it is shown to callers. */
  readonly message?: string;
  /** Replaces the table's status. */
  readonly status?: number;
  /** Whole seconds, at least 1: becomes `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** What went wrong, for the log; no caller ever sees it. */
  readonly cause?: unknown;
}

/** The one error that meets callers: a code of the contract, and what there is to say about it. */
export class ContractError extends Error {
  override readonly name = "ContractError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, { message, status, retryAfterSeconds, cause }: ErrorDetails = {}) {
    const row: ErrorRow = ERROR_TABLE[code];
    super(message ?? row.message, { cause });
    this.code = code;
    this.status = status ?? row.status;
    this.retryAfterSeconds = retryAfterSeconds ?? row.retryAfterSeconds;
  }
}

const MAX_QUOTED_CHARACTERS = 40;

/** What came in place of what was expected, for a message: text in quotes and cut, of all else only the kind. */
export function quote(value: unknown): string {
  if (typeof value !== "string") {
    if (value === undefined) return "nothing";
    if (value === null) return "null";
    return Array.isArray(value) ? "a list" : typeof value === "object" ? "an object" : `a ${typeof value}`;
  }
  const isLong = value.length > MAX_QUOTED_CHARACTERS;
  return JSON.stringify(isLong ? `${value.slice(0, MAX_QUOTED_CHARACTERS)}…` : value);
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

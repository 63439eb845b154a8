import { rowOf, type ErrorCode } from "./error-codes.ts";

/** What a failed collect has moved. "yes": its transaction landed; the amounts are not certain. */
export const MOVED = ["yes", "no", "unknown"] as const;
export type Moved = (typeof MOVED)[number];

/** Overrides of the code's row in `ERROR_CODES`, and details for the log. */
export interface ErrorDetails {
  /** Callers see it. */
  readonly message?: string;
  readonly status?: number;
  /** Whole seconds, at least 1: becomes `Retry-After`. */
  readonly retryAfterSeconds?: number | undefined;
  /** What went wrong, for the log; callers never see it. */
  readonly cause?: unknown;
  /**
   * What happened and what the operator should do, for the log. A cause without a hint marks a bug.
   */
  readonly operatorHint?: string | undefined;
  /** More `extensions` of the error in GraphQL, which are members of a failed collect in REST. */
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** The one error that callers see: a code of the contract with its status and message. */
export class ContractError extends Error {
  override readonly name = "ContractError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  readonly operatorHint: string | undefined;
  readonly extensions: Readonly<Record<string, unknown>> | undefined;
  readonly #details: ErrorDetails;

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    const row = rowOf(code);
    super(details.message ?? row.message, { cause: details.cause });
    this.code = code;
    this.status = details.status ?? row.status;
    this.retryAfterSeconds = details.retryAfterSeconds ?? row.retryAfterSeconds;
    this.operatorHint = details.operatorHint;
    this.extensions = details.extensions;
    this.#details = details;
  }

  /** Returns a copy of this error with more `extensions`. */
  with(more: Readonly<Record<string, unknown>>): ContractError {
    const extensions = { ...this.extensions, ...more };
    return new ContractError(this.code, { ...this.#details, extensions });
  }
}

/** The error of a wrong value in a request. `what`: a sentence without its full stop. */
export function wrongValue(code: ErrorCode, what: string, received: unknown): ContractError {
  return new ContractError(code, { message: `${what}. Received ${quote(received)}.` });
}

const MAX_QUOTED_CHARACTERS = 40;

/**
 * Formats a received value for an error message: strings are quoted and cut, other values show only
 * their type.
 */
export function quote(value: unknown): string {
  if (typeof value !== "string") {
    if (value === null) return "null";
    return Array.isArray(value)
      ? "a list"
      : typeof value === "object"
        ? "an object"
        : `a ${typeof value}`;
  }
  return JSON.stringify(cut(value)).replaceAll(
    UNPRINTABLE,
    (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`,
  );
}

/** Control and format characters, which terminals obey, or which change the order of a text. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Cuts a received text that is too long for an error. */
export function cut(text: string): string {
  const isLong = text.length > MAX_QUOTED_CHARACTERS;
  return isLong ? `${text.slice(0, MAX_QUOTED_CHARACTERS)}…` : text;
}

/** The headers of an error: `Retry-After` in whole seconds, or none. */
export function errorHeaders(error: ContractError): Record<string, string> {
  return error.retryAfterSeconds === undefined
    ? {}
    : { "retry-after": String(error.retryAfterSeconds) };
}

/** The details of an error that says when to try again: `message` and `Retry-After` agree. */
export function retryIn(
  retryAfterSeconds: number,
  what: string,
  ...more: readonly string[]
): { message: string; retryAfterSeconds: number } {
  const unit = retryAfterSeconds === 1 ? "second" : "seconds";
  const message = [what, `Try again in ${retryAfterSeconds} ${unit}.`, ...more].join(" ");
  return { message, retryAfterSeconds };
}

/** Converts a duration to the value of `Retry-After`: whole seconds, rounded up, at least 1. */
export function toRetryAfterSeconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1000));
}

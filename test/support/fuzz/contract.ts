import { expect } from "vitest";
import type { AddressesOf } from "../../../src/chain/launchpad/account-addresses.ts";
import { MOVED } from "../../../src/contract/contract-error.ts";
import { ERROR_CODES, type ErrorCode } from "../../../src/contract/error-codes.ts";

interface ParsedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: any;
}

/** Statuses that an error may have in addition to its status in the table. */
const OTHER_STATUS: Partial<Record<ErrorCode, number>> = { INVALID_SOCIAL_ID: 413 };
const WITH_RETRY_AFTER: readonly string[] = ["RATE_LIMITED", "SOCIAL_RATE_LIMITED", "SERVICE_BUSY"];

/**
 * GraphQL's own codes: the request is malformed, cannot be parsed, names an unknown operation, does
 * not match the schema, or has invalid variables for a subscription.
 */
const GRAPHQL_CODES = [
  "BAD_REQUEST",
  "GRAPHQL_PARSE_FAILED",
  "OPERATION_RESOLUTION_FAILURE",
  "GRAPHQL_VALIDATION_FAILED",
  "BAD_USER_INPUT",
];

/** Fields in SOL, and fields in lamports. */
const SOL_FIELD = /(^|_)(vault|pda|total|withdrawable|collected|newBalance|waiting|remaining)$/;
const LAMPORTS_FIELD = /Lamports$/;
const SOL_PATTERN = /^[0-9]+\.[0-9]{4}$/;

/** Fails unless the answer is a contract error with one of these codes. */
export function expectError(
  { status, headers, body }: ParsedResponse,
  allowed: readonly ErrorCode[],
  members: { readonly success?: false } = {},
): void {
  expect(headers.get("content-type")).toMatch(/^application\/json\b/);
  expect(allowed).toContain(body.error);
  const code = body.error as ErrorCode;
  expect([ERROR_CODES[code].status, OTHER_STATUS[code]]).toContain(status);
  const { lastCollect, lastCollects, left, scope, retryAfterSeconds, txSignature, moved, ...rest } =
    body;
  if ("success" in members) expect(MOVED).toContain(moved);
  else
    for (const each of [
      lastCollect,
      lastCollects,
      left,
      scope,
      retryAfterSeconds,
      txSignature,
      moved,
    ])
      expect(each).toBeUndefined();
  expect(rest).toEqual({
    ...members,
    error: code,
    message: expect.stringMatching(/./),
    ...(code === "NOTHING_TO_COLLECT" ? { collected: "0.0000" } : {}),
  });
  const retryAfter = headers.get("retry-after") ?? "";
  if (moved !== undefined) expect(retryAfter).toBe(String(retryAfterSeconds ?? ""));
  if (WITH_RETRY_AFTER.includes(code)) expect(retryAfter).toMatch(/^[1-9]\d{0,2}$/);
  // Only while the circuit breaker is open.
  else if (moved === undefined)
    expect(retryAfter).toMatch(code === "SOCIAL_API_UNAVAILABLE" ? /^([1-9]\d?)?$/ : /^$/);
}

/**
 * Fails unless the answer is a wallet with the address of its id, or an error with one of these
 * codes.
 */
export function expectLookup(
  answer: ParsedResponse,
  addressesOf: AddressesOf,
  allowed: readonly ErrorCode[],
): void {
  if (answer.status !== 200) {
    expectError(answer, allowed);
    return;
  }
  const { body } = answer;
  const sol: unknown = expect.stringMatching(SOL_PATTERN);
  const exact: unknown = expect.stringMatching(/^\d+$/);
  expect(body).toEqual({
    handle: expect.stringMatching(/^\w+$/),
    socialId: expect.stringMatching(/^(0|[1-9]\d{0,19})$/),
    address: addressesOf(body.socialId).address,
    derivation: addressesOf(body.socialId).derivation,
    balance: {
      ...{ vault: sol, pda: sol, total: sol, withdrawable: sol },
      lamports: { vault: exact, pda: exact, total: exact, withdrawable: exact },
    },
    profile: expect.any(Object),
  });
}

/** Fails unless the answer is a successful collect, or an error with one of these codes. */
export function expectCollect(answer: ParsedResponse, allowed: readonly ErrorCode[]): void {
  if (answer.status !== 200) {
    expectError(answer, allowed, { success: false });
    return;
  }
  const sol: unknown = expect.stringMatching(SOL_PATTERN);
  expect(answer.body).toEqual({
    success: true,
    collected: sol,
    newBalance: sol,
    txSignature: expect.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{64,88}$/),
    left: expect.any(Array),
    lastCollects: expect.any(Array),
  });
}

/**
 * Fails unless the body is a well-formed GraphQL response whose errors have one of GraphQL's own
 * codes or of these, and whose amounts are well-formed. Aliases must end with `_` and the field's
 * name.
 */
export function expectGraphQL(body: any, allowed: readonly ErrorCode[]): void {
  expect(typeof body === "object" && body !== null && !Array.isArray(body)).toBe(true);
  const { data, errors = [], ...rest } = body;
  expect(rest).toEqual({});
  expect(Array.isArray(errors)).toBe(true);
  expect(data !== undefined || errors.length > 0).toBe(true);
  for (const { message, extensions } of errors) {
    expect(message).toMatch(/./);
    expect([...GRAPHQL_CODES, ...allowed]).toContain(extensions?.code);
  }
  expectAmounts(data);
}

function expectAmounts(value: unknown): void {
  if (value === null || typeof value !== "object") return;
  for (const [name, member] of Object.entries(value)) {
    // Its `remaining` is a number of requests.
    if (name.endsWith("rateLimit")) continue;
    if (member !== null && SOL_FIELD.test(name)) expect(member).toMatch(SOL_PATTERN);
    else if (member !== null && LAMPORTS_FIELD.test(name)) expect(member).toMatch(/^\d+$/);
    else expectAmounts(member);
  }
}

/** Fails when the log has a line of level error or above; empties the log. */
export function expectNoErrorLogged(logLines: string[]): void {
  const errors = logLines.splice(0).filter((line) => Number(/"level":(\d+)/.exec(line)?.[1]) >= 50);
  expect(errors).toEqual([]);
}

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ERROR_CODES } from "../../src/contract/error-codes.ts";

/** Section 7 of the specification, and the two codes for what is outside of it. */
const CONTRACT = {
  HANDLE_REQUIRED: 400,
  INVALID_HANDLE: 400,
  SOCIAL_NOT_FOUND: 404,
  SOCIAL_RATE_LIMITED: 429,
  SOCIAL_API_UNAVAILABLE: 503,
  SERVICE_BUSY: 503,
  LOOKUP_FAILED: 500,
  INVALID_SOCIAL_ID: 400,
  NOTHING_TO_COLLECT: 400,
  INSUFFICIENT_FUNDS: 500,
  COLLECT_FAILED: 500,
  RATE_LIMITED: 429,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
};

it("the table of errors has the codes of the contract with their statuses, and no others", () => {
  const table = Object.entries(ERROR_CODES).map(([code, { status }]) => [code, status]);
  expect(Object.fromEntries(table)).toEqual(CONTRACT);
});

it("every code is produced by a test over HTTP", () => {
  const tests = ["lookup", "collect", "rate-limiting"].map((name) =>
    readFileSync(new URL(`./${name}.test.ts`, import.meta.url), "utf8"),
  );
  for (const code of Object.keys(CONTRACT)) expect(tests.join()).toContain(code);
});

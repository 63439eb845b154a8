import { errorHeaders, type ContractError } from "../contract/contract-error.ts";

/** Responses must not be cached: balances change at any time. */
export const JSON_HEADERS = {
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
};

/** A JSON response. */
export function respondJson(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { ...JSON_HEADERS, ...headers },
  });
}

/** Members that all error bodies of a route have besides `error` and `message`. */
export type FailureMembers = Readonly<Record<string, boolean>>;

/** The contract's error body. */
export function toErrorBody({ code, message }: ContractError, members?: FailureMembers) {
  return { ...members, error: code, message };
}

/** An error as a response, with its own headers and the given ones. */
export function respondError(
  error: ContractError,
  { headers = {}, members }: { headers?: Record<string, string>; members?: FailureMembers | undefined } = {},
): Response {
  return respondJson(error.status, toErrorBody(error, members), { ...errorHeaders(error), ...headers });
}

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

/** The contract's error body. */
export function toErrorBody({ code, message }: ContractError) {
  return { error: code, message };
}

/** An error as a response, with its own headers and the given ones. */
export function respondError(
  error: ContractError,
  { headers = {} }: { headers?: Record<string, string> } = {},
): Response {
  return respondJson(error.status, toErrorBody(error), { ...errorHeaders(error), ...headers });
}

import { errorHeaders, type ContractError } from "../contract/errors.ts";

/** Answers are of this moment and of this caller's asking: nobody keeps them. */
export const JSON_HEADERS = {
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
};

/** A JSON answer. */
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

/** An error as an answer, with the headers that it brings and the ones given. */
export function respondError(
  error: ContractError,
  { headers = {} }: { headers?: Record<string, string> } = {},
): Response {
  return respondJson(error.status, toErrorBody(error), { ...errorHeaders(error), ...headers });
}

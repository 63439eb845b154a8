import { ERROR_TABLE, errorHeaders, type ContractError } from "../errors.ts";

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

/** The contract's error body, with the code's status and `Retry-After`, or the ones given. */
export function respondError(
  error: ContractError,
  {
    status = ERROR_TABLE[error.code].status,
    headers = {},
  }: { status?: number; headers?: Record<string, string> } = {},
): Response {
  return respondJson(
    status,
    { error: error.code, message: error.message },
    { ...errorHeaders(error), ...headers },
  );
}

import { Response } from "@whatwg-node/fetch";
import { errorHeaders, type ContractError } from "./contract-error.ts";

/** Reads a request's body, unless it is longer. Rejects when the caller disconnects. */
export type ReadBody = (maxBytes: number) => Promise<Buffer | "too large">;

/** A body that arrives in more pieces counts as too large. A piece is a chunk, or one packet's part. */
export const MAX_BODY_PIECES = 256;

export const JSON_TYPE = "application/json; charset=utf-8";

/** Whether a `Content-Type` is JSON. Parameters of no effect are ignored. */
export function isJson(contentType = ""): boolean {
  return /^application\/json[ \t]*(?:;|$)/i.test(contentType) && !isInOtherCharset(contentType);
}

/** Whether a `Content-Type` names a character set that has other bytes for ASCII than UTF-8. */
export function isInOtherCharset(contentType: string): boolean {
  return /;[ \t]*charset="?(?:utf-?16|utf-?32|ucs-?2)/i.test(contentType);
}

export function respondJson(
  status: number,
  value: unknown,
  headers?: Readonly<Record<string, string>>,
): Response {
  // The object of headers is new each time: the response adds its length to it.
  const all = { "content-type": JSON_TYPE, ...headers };
  return new Response(JSON.stringify(value), { status, headers: all });
}

/** The contract's error body. */
export function toErrorBody({ code, message }: ContractError): object {
  return { error: code, message };
}

export function respondError(error: ContractError, toBody = toErrorBody): Response {
  return respondJson(error.status, toBody(error), errorHeaders(error));
}

import type { IncomingHttpHeaders } from "node:http";
import { errorHeaders, type ContractError } from "./contract-error.ts";

/** A request, as handlers receive it. */
export interface HttpRequest {
  /** GET for a HEAD request. */
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** The part of the URL after the `?`. */
  readonly query: string;
  /** Reads the body, unless it has more than `maxBytes`. Rejects when the caller disconnects. */
  readonly readBody: (maxBytes: number) => Promise<Buffer | "too large">;
}

/** A response, before it is written. */
export interface Answer {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | ReadableStream<Uint8Array>;
}

export const JSON_TYPE = "application/json; charset=utf-8";
const JSON_HEADERS = { "content-type": JSON_TYPE };

/** Whether a `Content-Type` is JSON. Parameters are ignored: JSON is always UTF-8. */
export function isJson(contentType = ""): boolean {
  return /^application\/json[ \t]*(?:;|$)/i.test(contentType);
}

export function answerJson(status: number, value: unknown): Answer {
  return { status, headers: JSON_HEADERS, body: JSON.stringify(value) };
}

/** The contract's error body. */
export function toErrorBody({ code, message }: ContractError): object {
  return { error: code, message };
}

export function answerError(error: ContractError, toBody = toErrorBody): Answer {
  const headers = { ...JSON_HEADERS, ...errorHeaders(error) };
  return { status: error.status, headers, body: JSON.stringify(toBody(error)) };
}

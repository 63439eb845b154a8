import { STATUS_CODES } from "node:http";
import { quote } from "../contract/contract-error.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { answerError, answerJson, type Answer } from "../contract/http-messages.ts";
import { BAD_REQUEST } from "../graphql/errors.ts";
import { MAX_PIECES } from "./request-body.ts";
import { HttpRequestScope, type RequestScopeNeeds } from "./request-scope.ts";
import { toHeaders } from "./router.ts";
import type { CallerConnection } from "./streams.ts";

/** Why a request is not valid HTTP. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  /** A GET's target that has forbidden characters, if the parser shows it. */
  readonly target?: string | undefined;
}

/** An error of Node's HTTP parser. */
export interface ParseError extends Error {
  readonly code?: string;
  /** What the socket received last; absent for a timeout. */
  readonly rawPacket?: Buffer;
  /** The offset of the error in `rawPacket`. */
  readonly bytesParsed?: number;
}

/** Returns the whole response to a request that is not valid HTTP; without the body for a HEAD. */
export type WriteRefusal = (refusal: Refusal, isHead: boolean) => string;

export const NO_HOST: Refusal = { status: 400, message: "The header `Host` is missing." };
export const TWO_HOSTS: Refusal = { status: 400, message: "The header `Host` is repeated." };
export const NO_TUNNEL: Refusal = {
  status: 400,
  message: "CONNECT is for proxies: this server opens no tunnels.",
};
export const TOO_MANY_PIECES: Refusal = {
  status: 413,
  message: `The body arrives in too many pieces: the maximum is ${MAX_PIECES}.`,
};
/** A refusal asks for nothing, and does not depend on the caller. */
const NO_CONNECTION: CallerConnection = {
  remoteAddress: undefined,
  signal: new AbortController().signal,
  disconnect: () => undefined,
};
const NOT_HTTP: Refusal = { status: 400, message: "The request is not valid HTTP/1.1." };

/** The refusals by the parser's error code. The statuses are Node's defaults. */
const BY_CODE: Readonly<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    message: "The request took too long to arrive. Send it again.",
  },
  HPE_HEADER_OVERFLOW: { status: 431, message: "The request's target and headers are too long." },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, message: "The chunk extensions are too long." },
  HPE_INVALID_METHOD: { status: 400, message: "The request's method is unknown." },
  HPE_INVALID_URL: {
    status: 400,
    message: "The request's target has characters that must be percent-encoded.",
  },
};

/** Why Node's parser refuses a request. */
export function refusalOf({ code = "", rawPacket, bytesParsed }: ParseError): Refusal {
  const refusal = BY_CODE[code] ?? NOT_HTTP;
  if (code !== "HPE_INVALID_URL" || !rawPacket || bytesParsed === undefined) return refusal;
  // Other requests may precede this line. If the line arrives in several packets, only the last
  // packet is known.
  const line = rawPacket.subarray(rawPacket.lastIndexOf("\n", bytesParsed) + 1).toString();
  return { ...refusal, target: /^GET (\S+)/.exec(line)?.[1] };
}

/**
 * Refuses with BAD_REQUEST, or with INVALID_HANDLE if a lookup's handle has raw bytes above ASCII.
 */
export function createWriteRefusal(
  needs: RequestScopeNeeds & { basePath: string; format: HandleFormat },
): WriteRefusal {
  const { basePath, format } = needs;
  const lookupPrefix = `${basePath}/wallet/lookup?`;

  function toAnswer({ status, message, target }: Refusal, scope: HttpRequestScope): Answer {
    const query = target?.startsWith(lookupPrefix) ? target.slice(lookupPrefix.length) : "";
    const handle = new URLSearchParams(query).get("handle") ?? "";
    if (/[^\0-\x7f]/.test(handle)) {
      const receivedHandle = handle.includes("\ufffd") ? "bytes that are not UTF-8" : quote(handle);
      scope.recordCode("INVALID_HANDLE");
      return answerError(invalidHandle(format, receivedHandle));
    }
    return answerJson(status, { error: BAD_REQUEST, message });
  }

  return (refusal, isHead) => {
    const scope = new HttpRequestScope(needs, {}, NO_CONNECTION);
    const answer = scope.record("other", toAnswer(refusal, scope));
    const { status, body } = answer;
    const text = body as string;
    const headers = {
      ...toHeaders(answer, scope.headers),
      date: new Date().toUTCString(),
      connection: "close",
      "content-length": Buffer.byteLength(text),
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${isHead ? "" : text}`;
  };
}

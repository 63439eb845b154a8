import { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Writable } from "node:stream";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { quote } from "../contract/contract-error.ts";
import { respondJson } from "../rest/respond.ts";
import { BAD_REQUEST } from "../graphql/errors.ts";
import { discardInput, MAX_PIECES } from "./request-body.ts";
import type { HttpRequestScope } from "./request-scope.ts";

/** Why a request is not valid HTTP. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  /** The target of a GET with bytes above ASCII, if the parser shows it. */
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

export const NO_HOST: Refusal = { status: 400, message: "The header `Host` is missing." };
export const TWO_HOSTS: Refusal = { status: 400, message: "The header `Host` is repeated." };
export const UNKNOWN_EXPECTATION: Refusal = {
  status: 417,
  message: "The only supported expectation is `Expect: 100-continue`.",
};
export const TOO_MANY_PIECES: Refusal = {
  status: 413,
  message: `The body arrives in too many pieces: the maximum is ${MAX_PIECES}.`,
};
const NOT_HTTP: Refusal = { status: 400, message: "The request is not valid HTTP/1.1." };

/** With the statuses that Node answers with by default. */
const BY_CODE: Readonly<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: "The request took too long to arrive. Send it again." },
  HPE_HEADER_OVERFLOW: { status: 431, message: "The request's target and headers are too long." },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, message: "The chunk extensions are too long." },
  HPE_INVALID_METHOD: { status: 400, message: "The request's method is unknown." },
  HPE_INVALID_URL: {
    status: 400,
    message: "The request's target has characters that must be percent-encoded.",
  },
};

export function refusalOf({ code = "", rawPacket, bytesParsed }: ParseError): Refusal {
  const refusal = BY_CODE[code] ?? NOT_HTTP;
  if (code !== "HPE_INVALID_URL" || !rawPacket || bytesParsed === undefined) return refusal;
  // Other requests may precede it. Of a line that arrives in several packets, only the last one is known.
  const line = rawPacket.subarray(rawPacket.lastIndexOf("\n", bytesParsed) + 1).toString();
  return { ...refusal, target: /^GET (\S+)/.exec(line)?.[1] };
}

/** A response on the socket of a request that the parser refuses. Its end closes the connection. */
export function createRefusalResponse(socket: Socket): ServerResponse {
  discardInput(socket);
  const request = Object.assign(new IncomingMessage(socket), {
    method: "GET",
    url: "/",
    httpVersionMajor: 1,
    httpVersionMinor: 1,
  });
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // Not the socket itself, which has the response to a request whose body is malformed. All at once: a caller that
  // closes its side ends the socket between two writes, and a write's error, which the socket handles, would be thrown.
  const output = new Writable({
    write: (bytes: Buffer, _encoding, done) => {
      socket.write(bytes);
      done();
    },
  });
  response.assignSocket(output as unknown as Socket);
  response.once("finish", () => socket.end());
  return response;
}

/** Answers refused requests: INVALID_HANDLE for a handle in raw bytes above ASCII, BAD_REQUEST for all others. */
export function createRespondRefusal({ basePath, format }: { basePath: string; format: HandleFormat }) {
  const lookupPrefix = `${basePath}/wallet/lookup?`;

  return ({ status, message, target }: Refusal, scope: HttpRequestScope): Response => {
    if (target?.startsWith(lookupPrefix)) {
      const handle = new URLSearchParams(target.slice(lookupPrefix.length)).get("handle") ?? "";
      if (/[^\0-\x7f]/.test(handle))
        throw invalidHandle(format, handle.includes("\ufffd") ? "bytes that are not UTF-8" : quote(handle));
    }
    scope.recordCode(BAD_REQUEST);
    return respondJson(status, { error: BAD_REQUEST, message });
  };
}

import { once } from "node:events";
import { createServer, STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createServerAdapter, sendNodeResponse, useErrorHandling } from "@whatwg-node/server";
import { ContractError } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import { createBytesInFlight } from "./bytes-in-flight.ts";
import type { CallerConnection } from "./caller-connection.ts";
import type { Client, Origin } from "./client-address.ts";
import { discardBody, readBody } from "./request-body.ts";

/** What a server answers. */
export interface Responder {
  /** The HTTP API. */
  readonly fetch: (request: Request, connection: CallerConnection) => Promise<Response>;
  /** The response to a request that is not valid HTTP, and to one whose handler has a bug. */
  readonly refuse: (error: ContractError) => Response;
  readonly identifyClient: (origin: Origin) => Client;
  readonly log: Logger;
}

/** The limits of connections. Times in ms. */
export const CONNECTION_LIMITS = {
  /**
   * A request whose headers take longer gets 408. The first request's time starts when the
   * connection opens.
   */
  headersTimeout: 10_000,
  /**
   * A request that takes longer to arrive gets 408, or a disconnect while the server is closing.
   */
  requestTimeout: 20_000,
  /** How often `headersTimeout` and `requestTimeout` are checked. */
  connectionsCheckingInterval: 1_000,
  /**
   * How long a connection may be idle. Load balancers must close it first, or they lose requests:
   * Google's waits 600 s, which nobody can change.
   */
  keepAliveTimeout: 620_000,
  /** In bytes. A request with larger headers gets 431. */
  maxHeaderSize: 16_384,
  /** The connection then closes. */
  maxRequestsPerSocket: 10_000,
  /**
   * A response is cut off if its caller has not read it after `readMs`, and a second for each
   * `readBytesPerSecond`.
   */
  readMs: 30_000,
  readBytesPerSecond: 16_384,
  /**
   * How long a connection stays open after a response that has not waited for the request's end.
   * Closing at once could reset the connection and lose the response.
   */
  lingerMs: 500,
  /**
   * The most bytes of responses that are being read and of bodies that arrive. Above it, those cut
   * off are the oldest. A response takes about twice its length in memory.
   */
  maxBytes: 64_000_000,
  /** The same, of one address. */
  maxBytesPerAddress: 16_000_000,
  /**
   * Each takes about 10 kB. For a further connection, the one that has waited longest for its
   * caller's request closes. If none waits, the further one closes.
   */
  maxConnections: 10_000,
};

/** A body of unknown length counts as the longest that a route reads. */
const LONGEST_BODY_BYTES = 100_000;
/** How many pipelined requests may wait on a connection; one more closes it. */
const MAX_PIPELINED = 100;

interface Connection {
  /** The response to the request in flight, or to one whose body has not arrived. */
  response: ServerResponse | undefined;
  /** How many pipelined requests wait. */
  waiting: number;
}

/** Serves an HTTP API with node:http. */
export async function listen(
  { fetch, refuse, identifyClient, log }: Responder,
  { host, port }: { host: string; port: number },
  {
    maxConnections,
    maxRequestsPerSocket,
    readMs,
    readBytesPerSecond,
    lingerMs,
    maxBytes,
    maxBytesPerAddress,
    ...limits
  } = CONNECTION_LIMITS,
) {
  /** The one that has been idle longest first. */
  const connections = new Map<Socket, Connection>();
  const bytesInFlight = createBytesInFlight({ maxBytes, maxBytesPerAddress });
  let isClosing = false;

  const adapter = createServerAdapter<CallerConnection>(fetch, {
    plugins: [
      // The library would show the error's stack.
      useErrorHandling((error) => {
        log.error({ err: error as unknown }, "a request failed");
        return refuse(new ContractError("LOOKUP_FAILED"));
      }),
    ],
  });
  const options = { ...limits, optimizeEmptyRequests: true, requireHostHeader: false };
  const server = createServer(options, receive);
  server.maxRequestsPerSocket = maxRequestsPerSocket;
  // Ignores an `Expect` header that Node does not know: Node would answer without reading the body.
  server.on("checkExpectation", receive);

  server.on("connection", (socket) => {
    if (connections.size >= maxConnections && !closeLongestIdle()) {
      socket.destroy();
      return;
    }
    connections.set(socket, { response: undefined, waiting: 0 });
    socket.once("close", () => connections.delete(socket));
  });

  /** Returns false if every connection has a whole request in flight. */
  function closeLongestIdle(): boolean {
    for (const [socket, { response }] of connections) {
      if (response?.req.complete && !response.closed) continue;
      connections.delete(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  function setResponse(socket: Socket, connection: Connection, response?: ServerResponse): void {
    connection.response = response;
    // Moves the connection to the end.
    if (connections.delete(socket)) connections.set(socket, connection);
  }

  /** Answers pipelined requests one after the other, so that few responses wait for the caller. */
  function receive(request: IncomingMessage, response: ServerResponse): void {
    const connection = connections.get(request.socket);
    if (!connection || connection.waiting === MAX_PIPELINED) {
      request.socket.destroy();
    } else if (response.socket) {
      void answer(request, response, connection);
    } else {
      connection.waiting++;
      response.once("socket", () => {
        connection.waiting--;
        void answer(request, response, connection);
      });
    }
  }

  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection,
  ): Promise<void> {
    const { socket, headers } = request;
    const caller = new AbortController();
    const bodyBytes = lengthOfBody(request);
    setResponse(socket, connection, response);
    response.once("close", () => {
      if (!response.writableFinished) caller.abort();
      // Otherwise the connection is not idle until the body has arrived.
      if (connection.response === response && request.complete) setResponse(socket, connection);
      if (isClosing) server.closeIdleConnections();
    });
    response.once("finish", () => {
      if (!request.complete)
        setTimeout(() => {
          if (!request.complete) socket.destroy();
        }, lingerMs).unref();
    });
    // Node's parser discards what arrives together with a request that asks for an upgrade.
    if (isClosing || headers.upgrade !== undefined) response.setHeader("connection", "close");
    request.url = toOriginForm(request.url ?? "/");
    const client = identifyClient({
      remoteAddress: socket.remoteAddress,
      forwardedFor: headers["x-forwarded-for"] as string | undefined,
    });
    const cutOff = () => {
      socket.resetAndDestroy();
    };
    if (bodyBytes > 0) {
      const release = bytesInFlight.add(client.address, bodyBytes, cutOff);
      request.once("close", release);
      response.once("close", release);
    }
    try {
      const result =
        refuseHost(request, response) ??
        (await adapter.handleNodeRequestAndResponse(request, response, {
          path: request.url.replace(/\?.*/s, ""),
          client,
          readBody: (maxBytes) => readBody(request, maxBytes),
          signal: caller.signal,
          disconnect: () => response.destroy(),
        }));
      // A stream has no length. It waits for its caller, and has a time limit of its own.
      const bytes = Number(result.headers.get("content-length"));
      if (bytes > 0 && !response.closed) {
        const maxMs = readMs + (bytes / readBytesPerSecond) * 1_000;
        const timer = setTimeout(cutOff, maxMs).unref();
        const release = bytesInFlight.add(client.address, bytes, cutOff);
        response.once("close", () => {
          clearTimeout(timer);
          release();
        });
      }
      if (!request.complete && bodyBytes > 0) discardBody(request);
      await sendNodeResponse(result, response, request, true);
    } catch (error) {
      if (response.destroyed) log.debug({ err: error }, "the caller disconnected");
      else log.error({ err: error }, "a response could not be sent");
      response.destroy();
    }
  }

  /**
   * Refuses a request without `Host`, one with several, of which a proxy may use another than Node,
   * and one whose `Host` is not the whole origin of its URL.
   */
  function refuseHost(
    { headersDistinct, httpVersion }: IncomingMessage,
    response: ServerResponse,
  ): Response | undefined {
    const { host: hosts = httpVersion === "1.0" ? ["localhost"] : [] } = headersDistinct;
    const url = URL.parse(`http://${hosts[0]}`);
    if (hosts.length === 1 && url?.href === `${url?.origin}/`) return undefined;
    response.setHeader("connection", "close");
    const message = "A request needs one valid header `Host`.";
    return refuse(new ContractError("BAD_REQUEST", { message }));
  }

  server.on("clientError", (error: Error & { code?: string }, socket: Socket) => {
    const { response, waiting = 1 } = connections.get(socket) ?? {};
    // The caller or a proxy would match this response to an earlier request.
    if (waiting > 0 || response?.req.complete || response?.headersSent) socket.destroy();
    // False too if this request has been refused: Node reports each further packet.
    if (!socket.writable) return;
    void writeRefusal(socket, refuse(toRefusal(error.code)));
    setTimeout(() => socket.destroy(), lingerMs).unref();
  });

  // Node has removed its own listener for errors.
  server.on("connect", ({ socket }: IncomingMessage) => {
    socket.on("error", () => undefined);
    server.emit("clientError", new Error("CONNECT"), socket);
  });

  await once(server.listen(port, host), "listening");
  // Without a listener, an error would end the process, with transactions in flight.
  server.on("error", (error) => {
    log.error({ err: error }, "the HTTP server failed");
  });
  const { port: actualPort } = server.address() as AddressInfo;
  return {
    /** The base URL, with the actual port and without a path. */
    url: `http://${host.includes(":") ? `[${host}]` : host}:${actualPort}`,
    /** Accepts no more connections, and resolves when every request in flight is answered. */
    close: () =>
      new Promise<void>((resolve) => {
        isClosing = true;
        server.close(() => {
          resolve();
        });
        // Node does not close connections without a whole request, nor enforces `requestTimeout`.
        for (const [socket, { response }] of connections)
          if (!response || response.closed) socket.destroy();
        setTimeout(() => {
          for (const [socket, { response }] of connections)
            if (response?.req.complete === false) socket.destroy();
        }, limits.requestTimeout).unref();
      }),
  };
}

/** At most how many bytes of a body are kept, 0 without a body. */
function lengthOfBody({ headers }: IncomingMessage): number {
  if (headers["transfer-encoding"] !== undefined) return LONGEST_BODY_BYTES;
  return Math.min(Number(headers["content-length"] ?? 0), LONGEST_BODY_BYTES);
}

/** The refusals by the code of Node's parser. The statuses are Node's. */
const REFUSALS: Readonly<Record<string, readonly [status: number, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, "The request took too long to arrive. Send it again."],
  HPE_HEADER_OVERFLOW: [431, "The request's target and headers are too long."],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "The chunk extensions are too long."],
  HPE_INVALID_URL: [400, "The request's target has characters that must be percent-encoded."],
};

function toRefusal(code = ""): ContractError {
  const [status, message] = REFUSALS[code] ?? [400, "The request is not valid HTTP/1.1."];
  return new ContractError("BAD_REQUEST", { status, message });
}

/** Writes a response to a request that Node's parser refuses, and ends the connection. */
async function writeRefusal(socket: Socket, response: Response): Promise<void> {
  const { status, headers } = response;
  const lines = [...headers, ["connection", "close"]].map((header) => `${header.join(": ")}\r\n`);
  const start = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n`;
  socket.end(start + (await response.text()));
}

/**
 * The path and query of a request's target, as sent. Clients that expect a proxy send the whole
 * URL.
 */
function toOriginForm(target: string): string {
  if (target.startsWith("/")) return target;
  const pathAndQuery = target.replace(/^[a-z]+:\/\/[^/?#]*|^\*$/i, "");
  return pathAndQuery.startsWith("/") ? pathAndQuery : `/${pathAndQuery}`;
}

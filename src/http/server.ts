import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createServerAdapter, sendNodeResponse } from "@whatwg-node/server";
import { ContractError } from "../contract/contract-error.ts";
import { JSON_TYPE, toErrorBody, type ReadBody } from "../contract/http-messages.ts";
import type { Logger } from "../observability/log.ts";
import { createBytesInFlight } from "./bytes-in-flight.ts";
import type { Client, createIdentifyClient } from "./client-address.ts";
import { readBody } from "./request-body.ts";

/** What a request's handler needs of its connection, besides the request. */
export interface CallerConnection {
  /**
   * The path as sent. The request's URL has resolved dot segments and backslashes, which can hide a
   * path from a proxy that blocks it.
   */
  readonly path: string;
  readonly client: Client;
  readonly readBody: ReadBody;
  readonly disconnect: () => void;
}

/** What a server answers. */
export interface Responder {
  /** The HTTP API. */
  readonly fetch: (request: Request, connection: CallerConnection) => Promise<Response>;
  readonly identifyClient: ReturnType<typeof createIdentifyClient>;
  readonly log: Logger;
}

/** The limits of connections. Times in ms. */
export const CONNECTION_LIMITS = {
  /**
   * A request whose headers take longer gets 408. The first request's time starts when the
   * connection opens.
   */
  headersTimeout: 10_000,
  /** A request that takes longer to arrive gets 408. */
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
   * A response is cut off if its caller has not read it by then: the longest, of 5 MB, at 17 kB a
   * second.
   */
  readTimeout: 300_000,
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

/** Serves an HTTP API with node:http. */
export async function listen(
  { fetch, identifyClient, log }: Responder,
  { host, port }: { host: string; port: number },
  limits = CONNECTION_LIMITS,
) {
  /**
   * The responses of each connection that are not sent, or whose request has not arrived. The
   * connection that has been idle longest is first.
   */
  const connections = new Map<Socket, Set<ServerResponse>>();
  const bytesInFlight = createBytesInFlight(limits);

  const adapter = createServerAdapter<CallerConnection>(fetch, {
    // Node's own signal: reads pass it to `AbortSignal.any`.
    __useCustomAbortCtrl: false,
  });
  const server = createServer(
    // Two headers `Host` become one that is invalid: a proxy may use another than Node.
    { ...limits, requireHostHeader: false, joinDuplicateHeaders: true },
    (request, response) => void receive(request, response),
  );
  server.maxRequestsPerSocket = limits.maxRequestsPerSocket;

  server.on("connection", (socket) => {
    if (connections.size >= limits.maxConnections && !closeIdle()) {
      socket.destroy();
      return;
    }
    connections.set(socket, new Set());
    socket.once("close", () => connections.delete(socket));
  });

  /**
   * Closes the connection that has been idle longest. Returns false if every connection has a whole
   * request in flight.
   */
  function closeIdle(): boolean {
    for (const [socket, responses] of connections) {
      if ([...responses].some(({ req, closed }) => req.complete && !closed)) continue;
      connections.delete(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  /** Answers pipelined requests one after the other, so that few responses wait for the caller. */
  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket, headers, httpVersion } = request;
    const responses = connections.get(socket);
    if (!responses || responses.size > MAX_PIPELINED) {
      socket.destroy();
      return;
    }
    const { host = httpVersion === "1.0" ? "localhost" : "" } = headers;
    // It has only the host and port of a URL.
    if (/[/?#@\\\s,]/.test(host) || !URL.canParse(`http://${host}`)) {
      server.emit("clientError", new Error("it needs one valid header `Host`"), socket);
      return;
    }
    responses.add(response);
    const forwardedFor = headers["x-forwarded-for"] as string | undefined;
    const client = identifyClient(socket.remoteAddress, forwardedFor);
    const cutOff = () => {
      socket.resetAndDestroy();
    };
    const length = headers["transfer-encoding"] ? Infinity : Number(headers["content-length"]);
    bytesInFlight.add(client.address, Math.min(length, LONGEST_BODY_BYTES), request, cutOff);
    if (!response.socket) await once(response, "socket");
    const end = () => {
      if (!request.complete) socket.destroy();
      responses.delete(response);
      // Moves the connection to the end.
      if (connections.delete(socket)) connections.set(socket, responses);
      if (!server.listening) server.closeIdleConnections();
    };
    response.once("close", () => {
      if (request.complete) end();
      else setTimeout(end, limits.lingerMs).unref();
    });
    // Node's parser discards what arrives together with a request that asks for an upgrade.
    if (!server.listening || headers.upgrade !== undefined)
      response.setHeader("connection", "close");
    // As sent. Clients that expect a proxy send the whole URL.
    request.url = request.url!.replace(/^(?:[a-z]+:\/\/[^/?#]*|\*$)?\/?/i, "/");
    try {
      const result = await adapter.handleNodeRequestAndResponse(request, response, {
        path: request.url.replace(/\?.*/s, ""),
        client,
        readBody: (maxBytes) => readBody(request, maxBytes),
        disconnect: () => response.destroy(),
      });
      if (response.closed) return;
      const sending = sendNodeResponse(result, response, request, true);
      // The kernel has usually taken a short response by now. A stream has no length: it waits for
      // its caller, and has a time limit of its own.
      const bytes = socket.writableLength && Number(result.headers.get("content-length"));
      bytesInFlight.add(client.address, bytes, response, cutOff);
      await sending;
    } catch (error) {
      // No error shows a stack to the caller.
      if (!response.destroyed) log.error({ err: error }, "a response could not be sent");
      response.destroy();
    }
  }

  server.on("clientError", (error: Error & { code?: string }, socket: Socket) => {
    const responses = [...(connections.get(socket) ?? [])];
    // The caller or a proxy would match this response to an earlier request.
    if (responses.some(({ req, closed, headersSent }) => (req.complete ? !closed : headersSent)))
      socket.destroy();
    // False too if this request has been refused: Node reports each further packet.
    if (!socket.writable) return;
    setTimeout(() => socket.destroy(), limits.lingerMs).unref();
    const status = STATUSES[error.code ?? ""] ?? 400;
    const message = `The request cannot be read: ${error.message}.`;
    const body = JSON.stringify(toErrorBody(new ContractError("BAD_REQUEST", { message })));
    const length = Buffer.byteLength(body);
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${JSON_TYPE}\r\nContent-Length: ${length}\r\nX-Request-Id: ${randomUUID()}\r\nConnection: close\r\n\r\n${body}`,
    );
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
    async close(): Promise<void> {
      const closed = once(server.close(), "close");
      // Node does not close connections on which headers arrive, nor enforces `requestTimeout`.
      for (const [socket, responses] of connections) if (responses.size === 0) socket.destroy();
      setTimeout(() => {
        while (closeIdle());
      }, limits.requestTimeout).unref();
      await closed;
    },
  };
}

/** The statuses of requests that Node refuses, by its codes. They are Node's. */
const STATUSES: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};

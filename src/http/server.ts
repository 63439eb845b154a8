import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Logger } from "../observability/log.ts";
import {
  NO_HOST,
  NO_TUNNEL,
  refusalOf,
  TOO_MANY_PIECES,
  TWO_HOSTS,
  type ParseError,
  type Refusal,
  type WriteRefusal,
} from "./refusals.ts";
import type { HandleNode } from "./router.ts";
import { boundBody, discardInput, linger } from "./request-body.ts";

/** How a server answers valid and invalid requests. Errors are logged, and only disconnect. */
export interface Responder {
  readonly handle: HandleNode;
  readonly writeRefusal: WriteRefusal;
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
  /** A caller that reads none of its response is disconnected after one to two times this long. */
  stalledMs: 30_000,
  /**
   * Each takes about 10 kB. For a further connection, the one that has been idle longest closes. If
   * none is idle, the further one closes.
   */
  maxConnections: 10_000,
};

/**
 * How many pipelined requests may wait on a connection; one more closes it. Clients rarely
 * pipeline.
 */
const MAX_PIPELINED = 100;

interface Connection {
  /** The response to the request in flight, or to a request whose body still arrives. */
  response: ServerResponse | undefined;
  isRefused: boolean;
  /** How many pipelined requests wait. */
  pipelined: number;
  /** {@link takenOf} at the last check, if more waited. */
  taken: number | undefined;
  /** `bytesRead` when the connection became idle. */
  readWhenIdle: number;
  /** Aborts when the connection closes. All requests of the connection share it. */
  readonly closed: AbortController;
}

/** Serves the gateway with node:http, and passes it each request with the socket's address. */
export async function listen(
  { handle, writeRefusal, log }: Responder,
  { host, port }: { host: string; port: number },
  { maxConnections, stalledMs, ...limits } = CONNECTION_LIMITS,
) {
  const connections = new Map<Socket, Connection>();
  /** Connections without a request in flight, the longest idle first. */
  const idle = new Set<Socket>();
  let inFlight = 0;
  let isClosing = false;
  const options = { ...limits, optimizeEmptyRequests: true, requireHostHeader: false };
  const server = createServer(options, receive);
  // Ignores an `Expect` header that Node does not know: Node would answer without reading the body.
  server.on("checkExpectation", receive);
  server.on("clientError", (error: ParseError, socket: Socket) => {
    refuse(socket, refusalOf(error));
  });
  server.on("connect", ({ socket }: IncomingMessage) => {
    // Node has removed its own listener.
    socket.on("error", () => undefined);
    refuse(socket, NO_TUNNEL);
  });

  function receive(request: IncomingMessage, response: ServerResponse): void {
    boundBody(request, response, () => {
      refuse(request.socket, TOO_MANY_PIECES);
    });
    // Answer pipelined requests one at a time: a flood of them must not produce responses that
    // nobody reads.
    if (response.socket) {
      answer(request, response);
      return;
    }
    const connection = connections.get(request.socket);
    if (!connection || connection.pipelined === MAX_PIPELINED) {
      request.socket.destroy();
      return;
    }
    connection.pipelined++;
    response.once("socket", () => {
      connection.pipelined--;
      answer(request, response);
    });
  }

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const connection = connections.get(request.socket);
    if (!connection) return;
    const hasNoHost = request.headers.host === undefined && request.httpVersion === "1.1";
    if (hasNoHost || hasTwoHosts(request)) {
      connection.isRefused = true;
      sendRefusal(request.socket, hasNoHost ? NO_HOST : TWO_HOSTS, request.method === "HEAD");
      return;
    }
    const { socket } = request;
    connection.response = response;
    idle.delete(socket);
    inFlight++;
    response.once("close", () => {
      inFlight--;
      // A pipelined request may already be in flight.
      if (connection.response === response && request.complete) {
        connection.response = undefined;
        if (connections.has(socket)) setIdle(socket, connection);
      }
      closeIdle();
    });
    const { upgrade } = request.headers;
    // Node's parser discards what arrives together with a request that asks for an upgrade.
    if (isClosing || upgrade !== undefined) response.setHeader("connection", "close");
    request.url = toOriginForm(request.url ?? "/");
    const { remoteAddress } = socket;
    const disconnect = () => {
      response.destroy();
    };
    const { signal } = connection.closed;
    handle(request, response, { remoteAddress, signal, disconnect }).catch(disconnect);
  }

  /**
   * Answers a request that is not valid HTTP, and closes the connection. Sends no answer while an
   * earlier response is pending, or after the response to this request has begun: the caller or a
   * proxy would match it to another request.
   */
  function refuse(socket: Socket, refusal: Refusal): void {
    const connection = connections.get(socket);
    if (!connection || connection.isRefused) return;
    connection.isRefused = true;
    const { response, pipelined: waitingRequests } = connection;
    const isInBody = response?.req.complete === false;
    const isPending = response && (isInBody ? response.headersSent : !response.writableFinished);
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    if (waitingRequests > 0 || isPending) {
      linger(socket);
      return;
    }
    sendRefusal(socket, refusal);
  }

  /**
   * Answers at once, and only once: what the handler of the same request still writes is dropped,
   * because the socket has ended.
   */
  function sendRefusal(socket: Socket, refusal: Refusal, isHead = false): void {
    discardInput(socket);
    try {
      socket.end(writeRefusal(refusal, isHead));
    } catch (error) {
      log.error({ err: error }, "a refusal could not be sent");
      socket.destroy();
    }
  }

  server.on("connection", (socket) => {
    if (connections.size >= maxConnections && !closeLongestIdle()) {
      socket.destroy();
      return;
    }
    const connection: Connection = {
      response: undefined,
      isRefused: false,
      pipelined: 0,
      taken: undefined,
      readWhenIdle: 0,
      closed: new AbortController(),
    };
    connections.set(socket, connection);
    setIdle(socket, connection);
    socket.once("close", () => {
      forget(socket);
      connection.closed.abort();
    });
  });

  function setIdle(socket: Socket, connection: Connection): void {
    connection.readWhenIdle = socket.bytesRead;
    idle.add(socket);
  }

  function forget(socket: Socket): void {
    connections.delete(socket);
    idle.delete(socket);
  }

  /** Returns false if no connection is idle. */
  function closeLongestIdle(): boolean {
    for (const socket of idle) {
      idle.delete(socket);
      // Otherwise a request has begun to arrive.
      if (connections.get(socket)?.readWhenIdle === socket.bytesRead) {
        forget(socket);
        socket.destroy();
        return true;
      }
    }
    return false;
  }

  /**
   * Disconnects callers that have read nothing since the last check. `server.timeout` would also
   * end long collects.
   */
  const stalledCheck = setInterval(() => {
    for (const [socket, connection] of connections) {
      const takenBytes = socket.writableLength > 0 ? takenOf(socket) : undefined;
      if (takenBytes !== undefined && takenBytes === connection.taken) socket.resetAndDestroy();
      else connection.taken = takenBytes;
    }
  }, stalledMs).unref();

  /** Idle connections would keep a closing server open. */
  function closeIdle(): void {
    if (isClosing && inFlight === 0) server.closeAllConnections();
  }

  /** Enforces `requestTimeout` while the server closes, when Node no longer does. */
  function dropIncomplete(): void {
    for (const [socket, { response }] of connections)
      if (response?.req.complete === false) socket.destroy();
  }

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
          clearInterval(stalledCheck);
          resolve();
        });
        setTimeout(dropIncomplete, limits.requestTimeout).unref();
        closeIdle();
      }),
  };
}

/**
 * How many bytes the system has taken to send. Only Node's handle counts those of an unfinished
 * write.
 */
const takenOf = (socket: Socket & { _handle?: { writeQueueSize: number } | null }): number =>
  socket.bytesWritten - socket.writableLength - (socket._handle?.writeQueueSize ?? 0);

/**
 * Whether a request has several `Host` headers. Node keeps only the first, but a proxy may use
 * another.
 */
function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  return hosts > 1;
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

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** The gateway's way in for node:http. */
export type HandleNode = (
  request: IncomingMessage,
  response: ServerResponse,
  context: { remoteAddress: string | undefined },
) => Promise<void>;

/** What a connection may take. */
export interface ConnectionLimits {
  /** Until the head of a request is there, counted from the connection's start for the first one: 408. */
  readonly headersTimeout: number;
  /** Until all of a request is there: 408. When the process is told to end, what is still coming has so long once more. */
  readonly requestTimeout: number;
  /** How often connections are looked at for both. */
  readonly connectionsCheckingInterval: number;
  /** Between two requests. Longer than the 60 s, Caddy's 120 s, after which balancers give a connection up: they must be first. */
  readonly keepAliveTimeout: number;
  /** Bytes of a request's head: 431. */
  readonly maxHeaderSize: number;
  /** How long a caller may take nothing of an answer: it is dropped after this time, or twice this time at the latest. */
  readonly stalledMs: number;
  /** Some 10 kB each; what comes beyond is closed at once. */
  readonly maxConnections: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 130_000,
  maxHeaderSize: 16_384,
  stalledMs: 30_000,
  maxConnections: 10_000,
};

/** Requests that may wait for their turn on a connection; each takes memory, and clients seldom have any. */
const MAX_WAITING = 100;

/** What stands for the host in a request's URL. */
const HOST = "tributary";

/** A gateway that listens. */
export interface Listening {
  /** With the port that was really taken, and without a path. */
  readonly url: string;
  /** Accepts nothing more, and resolves when every request under way is answered. */
  close(): Promise<void>;
}

/** Listens with node:http before the gateway, and tells it from which address each request came. */
export async function listen(
  handle: HandleNode,
  { host, port }: { host: string; port: number },
  { maxConnections, stalledMs, ...limits } = CONNECTION_LIMITS,
): Promise<Listening> {
  const underWay = new Set<IncomingMessage>();
  /** What had been written to each connection when it was last looked at, if some of that had not been taken. */
  const connections = new Map<Socket, number | undefined>();
  /** How many requests wait on a connection behind the one that is being answered. */
  const waiting = new WeakMap<Socket, number>();
  let isClosing = false;
  const server = createServer({ ...limits, optimizeEmptyRequests: true }, (request, response) => {
    // Of requests that come one behind the other on a connection each waits for its turn: a flood of them must
    // not make as many answers that nobody reads.
    if (response.socket) {
      answer(request, response);
      return;
    }
    const { socket } = request;
    const ahead = waiting.get(socket) ?? 0;
    waiting.set(socket, ahead + 1);
    if (ahead === MAX_WAITING) {
      socket.destroy();
      return;
    }
    response.once("socket", () => {
      waiting.set(socket, waiting.get(socket)! - 1);
      answer(request, response);
    });
  });

  function answer(request: IncomingMessage, response: ServerResponse): void {
    underWay.add(request);
    response.once("close", () => {
      underWay.delete(request);
      closeUnused();
    });
    if (isClosing) response.setHeader("connection", "close");
    // Only the path and the query are looked at, and nothing that a Host header says may become part of them.
    request.headers.host = HOST;
    request.url = toOriginForm(request.url ?? "/");
    handle(request, response, { remoteAddress: request.socket.remoteAddress }).catch(() => {
      response.destroy();
    });
  }

  server.maxConnections = maxConnections;
  server.on("connection", (socket) => {
    connections.set(socket, undefined);
    socket.once("close", () => connections.delete(socket));
  });

  /** Drops callers who have taken nothing since the last look. The adapter takes node:http's own time-out off. */
  const looking = setInterval(() => {
    for (const [socket, before] of connections) {
      const written = socket.writableLength > 0 ? socket.bytesWritten : undefined;
      if (written !== undefined && written === before) socket.resetAndDestroy();
      else connections.set(socket, written);
    }
  }, stalledMs).unref();

  /** A connection on which no request is under way would keep a closing server open for as long as it likes. */
  function closeUnused(): void {
    if (isClosing && underWay.size === 0) server.closeAllConnections();
  }

  /** A server that is closing looks at no `requestTimeout` any more. */
  function dropIncomplete(): void {
    for (const request of underWay) if (!request.complete) request.socket.destroy();
  }

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, host, resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${taken}`,
    close: () =>
      new Promise((resolve) => {
        isClosing = true;
        server.close(() => {
          clearInterval(looking);
          resolve();
        });
        setTimeout(dropIncomplete, limits.requestTimeout).unref();
        closeUnused();
      }),
  };
}

/** The path and query of a request's target, which a client of a proxy gives with the whole address before them. */
function toOriginForm(target: string): string {
  if (target.startsWith("/")) return target;
  const url = URL.parse(target);
  return url ? url.pathname + url.search : "/";
}

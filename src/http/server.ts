import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The gateway's way in for node:http. */
export type HandleNode = (
  request: IncomingMessage,
  response: ServerResponse,
  context: { remoteAddress: string | undefined },
) => Promise<void>;

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
): Promise<Listening> {
  let underWay = 0;
  let isClosing = false;
  const server = createServer({ optimizeEmptyRequests: true }, (request, response) => {
    underWay++;
    response.once("close", () => {
      underWay--;
      closeUnused();
    });
    if (isClosing) response.setHeader("connection", "close");
    // Only the path and the query are looked at, and nothing that a Host header says may become part of them.
    request.headers.host = HOST;
    request.url = toOriginForm(request.url ?? "/");
    handle(request, response, { remoteAddress: request.socket.remoteAddress }).catch(() => {
      response.destroy();
    });
  });

  /** A connection on which no request is under way would keep a closing server open for as long as it likes. */
  function closeUnused(): void {
    if (isClosing && underWay === 0) server.closeAllConnections();
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
          resolve();
        });
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

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The gateway's way in for node:http. */
export type HandleNode = (
  request: IncomingMessage,
  response: ServerResponse,
  context: { remoteAddress: string | undefined },
) => Promise<void>;

/** A gateway that listens. */
export interface Listening {
  /** With the port that was really taken, and without a path. */
  readonly url: string;
  /** Accepts nothing more, and resolves when what was under way is answered. */
  close(): Promise<void>;
}

/** Listens with node:http before the gateway, and tells it from which address each request came. */
export async function listen(
  handle: HandleNode,
  { host, port }: { host: string; port: number },
): Promise<Listening> {
  const server = createServer((request, response) => {
    void handle(request, response, { remoteAddress: request.socket.remoteAddress });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, host, resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${taken}`,
    close: () => closeServer(server),
  };
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => {
      if (error) reject(error);
      else resolve();
    });
    server.closeIdleConnections();
  });
}

import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface LoopbackRequest extends Pick<IncomingMessage, "headers" | "socket"> {
  readonly url: URL;
  readonly body: string;
}

export interface LoopbackAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

type Handle = (request: LoopbackRequest) => LoopbackAnswer | Promise<LoopbackAnswer>;

export type LoopbackServer = Awaited<ReturnType<typeof createLoopbackServer>>;

/** Starts an HTTP server on `host` at `port`, or at any free port if `port` is 0. */
export async function createLoopbackServer({
  host = "127.0.0.1",
  port,
  handle,
}: {
  host?: string | undefined;
  port: number;
  handle: Handle;
}) {
  async function answer(incoming: IncomingMessage): Promise<LoopbackAnswer> {
    const { headers, socket } = incoming;
    try {
      const url = new URL(incoming.url ?? "/", "http://127.0.0.1");
      const body = await text(incoming);
      return await loopback.handle({ headers, socket, url, body });
    } catch (error) {
      // A bug of the sandbox itself, or an aborted request.
      return { status: 500, body: `The sandbox failed: ${String(error)}` };
    }
  }

  const server = createServer((incoming, response) => {
    void answer(incoming).then(({ status, headers, body }) =>
      response.writeHead(status, headers).end(body),
    );
  });
  // With the default of 5 s, a connection may close just as a client's pool reuses it.
  server.keepAliveTimeout = 65_000;

  await once(server.listen(port, host), "listening");
  // Without a listener, an error would end the process.
  server.on("error", (error) => {
    process.emitWarning(error);
  });

  const hostname = host.includes(":") ? `[${host}]` : host;
  const loopback = {
    /** For example `http://127.0.0.1:8899`, without a trailing slash. */
    url: `http://${hostname}:${(server.address() as AddressInfo).port}`,
    /** Answers requests. May be replaced, and never resolve. */
    handle,
    /** Closes at once, and aborts requests in flight. */
    async close() {
      const closed = once(server.close(), "close");
      server.closeAllConnections();
      await closed;
    },
  };
  return loopback;
}

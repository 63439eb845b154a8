import { once } from "node:events";
import { request as requestTarget } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { TRUSTED } from "../certificate.ts";

/** A client's connection, and the one that carries its bytes to the TLS server. */
interface Connection {
  readonly client: Socket;
  readonly inner: Socket;
}

async function listen(server: Server | Http2SecureServer): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Without those of one connection, and those that only HTTP/2 has. */
const withoutOwn = (headers: NodeJS.Dict<string | string[]>) =>
  Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => !/^(:.*|connection|keep-alive|transfer-encoding)$/.test(name),
    ),
  );

export type TlsProxy = Awaited<ReturnType<typeof startTlsProxy>>;

/**
 * Starts a proxy with TLS that offers HTTP/2, as providers do, and passes requests on to `target`.
 * If `target` breaks a connection, the proxy resets the client's.
 */
export async function startTlsProxy(target: string) {
  const open = new Set<Connection>();
  let opened = 0;

  const options = { ...TRUSTED, allowHTTP1: true };
  const tlsServer = createSecureServer(options, (request, response) => {
    const { method, url, headers, socket } = request;
    const { remotePort } = socket;
    const reset = () => {
      for (const { client, inner } of open)
        if (inner.localPort === remotePort) client.resetAndDestroy();
    };
    const call = requestTarget(
      new URL(url, target),
      { method, headers: withoutOwn(headers) },
      (answer) => {
        response.writeHead(answer.statusCode!, withoutOwn(answer.headers));
        answer.on("error", reset).pipe(response);
      },
    );
    call.on("error", reset);
    response.on("close", () => call.destroy());
    request.pipe(call);
  });
  const tlsPort = await listen(tlsServer);

  const relay = createServer((client) => {
    opened++;
    const inner = connect(tlsPort, "127.0.0.1");
    const connection = { client, inner };
    open.add(connection);
    client.on("error", () => inner.destroy());
    inner.on("error", () => client.destroy());
    client.on("close", () => {
      inner.destroy();
      open.delete(connection);
    });
    client.pipe(inner).pipe(client);
  });
  const port = await listen(relay);

  return {
    url: `https://127.0.0.1:${port}`,
    /** How many connections clients have opened. */
    opened: () => opened,
    /**
     * The open connections carry nothing any more, but stay open. New ones work. Resolves when a
     * client has sent something in vain.
     */
    async silence(): Promise<void> {
      const lost = [...open].map(({ client, inner }) => {
        client.unpipe(inner);
        inner.unpipe(client);
        return once(client.resume(), "data");
      });
      await Promise.race(lost);
    },
    /** Resets the open connections. */
    reset(): void {
      for (const { client } of open) client.resetAndDestroy();
    },
    /** Closes the open connections. Resolves when the clients have closed them, too. */
    async hangUp(): Promise<void> {
      await Promise.all([...open].map(({ client }) => once(client.end(), "close")));
    },
    close(): void {
      relay.close();
      tlsServer.close();
      for (const { client } of open) client.destroy();
    },
  };
}

import { once } from "node:events";
import { connect, type TcpNetConnectOpts } from "node:net";
import { onTestFinished } from "vitest";

/** Opens a connection to the server at `url`, which records what it receives until the test ends. */
export async function dial(url: string, options: Partial<TcpNetConnectOpts> = {}) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ...options });
  onTestFinished(() => void socket.destroy());
  let received = "";
  socket.on("data", (bytes: Buffer) => (received += bytes.toString())).on("error", () => undefined);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await Promise.race([once(socket, "connect"), closed]).catch(() => undefined);
  return {
    socket,
    received: () => received,
    statuses: () =>
      [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status)),
    closed: () => closed,
  };
}

/**
 * Sends bytes on a new connection to the server at `url`, and resolves with what it receives until
 * that closes.
 */
export async function sendRaw(url: string, bytes: string | Buffer) {
  const { socket, received, statuses, closed } = await dial(url);
  socket.write(bytes);
  await closed();
  const [head = "", ...rest] = received().split("\r\n\r\n");
  return {
    received: received(),
    statuses: statuses(),
    headers: Object.fromEntries(
      head
        .split("\r\n")
        .slice(1)
        .map((line) => [line.split(":", 1)[0]!.toLowerCase(), line.replace(/^[^:]*: */, "")]),
    ),
    body: rest.join("\r\n\r\n"),
  };
}

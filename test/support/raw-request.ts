import { once } from "node:events";
import { connect } from "node:net";

/**
 * Sends bytes on a new connection to the server at `url`, and resolves with what it receives until
 * that closes.
 */
export async function sendRaw(url: string, bytes: string | Buffer) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = "";
  socket.on("data", (chunk: Buffer) => (received += chunk.toString())).on("error", () => undefined);
  socket.write(bytes);
  await once(socket, "close");
  const [head = "", ...rest] = received.split("\r\n\r\n");
  return {
    received,
    statuses: [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status)),
    headers: Object.fromEntries(
      head
        .split("\r\n")
        .slice(1)
        .map((line) => [line.split(":", 1)[0]!.toLowerCase(), line.replace(/^[^:]*: */, "")]),
    ),
    body: rest.join("\r\n\r\n"),
  };
}

import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";

/**
 * Starts a proxy for a Redis server on this machine that can lose what the server sends. It passes
 * on each piece as it arrives: of a client that waits for one reply, a piece is this reply.
 */
export async function startDroppingProxy(port: number) {
  const closing = new AbortController();
  let passedPieces = 0;
  let lostPiece = Infinity;
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
      closing.signal.addEventListener("abort", () => from.destroy());
    }
    client.pipe(upstream);
    upstream.on("data", (piece) => {
      if (passedPieces++ !== lostPiece) client.write(piece);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** From now on, loses one piece: the next one, after `passed` more have passed. */
    loseOne(passed = 0): void {
      lostPiece = passedPieces + passed;
    },
    hasLost: () => passedPieces > lostPiece,
    async close(): Promise<void> {
      closing.abort();
      server.close();
      await once(server, "close");
    },
  };
}

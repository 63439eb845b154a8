import { connect, createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { pipeline, Transform } from "node:stream";

/** Starts a proxy for a Redis server on this machine. The proxy can delay what clients send. */
export async function startSlowProxy(port: number) {
  let delayMs = 0;
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    const delay = new Transform({
      transform(chunk, _, done) {
        if (delayMs > 0) setTimeout(done, delayMs, null, chunk);
        else done(null, chunk);
      },
    });
    pipeline(client, delay, upstream, client, () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** From now on, delays everything that clients send by this many milliseconds. */
    slowDown(ms: number): void {
      delayMs = ms;
    },
    close: () => server.close(),
  };
}

import { once } from "node:events";
import { connect } from "node:net";
import { Worker } from "node:worker_threads";

/** A server of HTTP whose thread stops as soon as it listens, until `accepting[0]` is no 0. */
const STOPPED_SERVER = `
  const { createServer } = require("node:http");
  const { parentPort, workerData: accepting } = require("node:worker_threads");
  const server = createServer((request, response) => response.end("fine"));
  server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    setImmediate(() => Atomics.wait(accepting, 0, 0));
  });
`;

/** More than the kernel lets wait for a server that accepts none. */
const WAITING_CONNECTIONS = 8;

/**
 * Starts a server to which connecting takes a second, as to one that is far away: more connections
 * wait than its backlog holds, so the kernel drops the next one's SYN. The client's kernel repeats
 * it after a second.
 */
export async function startLateServer() {
  const accepting = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(STOPPED_SERVER, { eval: true, workerData: accepting });
  const [port] = (await once(worker, "message")) as [number];
  const waiting = Array.from({ length: WAITING_CONNECTIONS }, () =>
    connect(port, "127.0.0.1").on("error", () => undefined),
  );
  await Promise.race(waiting.map((socket) => once(socket, "connect")));
  return {
    port,
    /** Accepts connections from now on. Call it once a SYN has been dropped. */
    accept(): void {
      for (const socket of waiting) socket.destroy();
      Atomics.store(accepting, 0, 1);
      Atomics.notify(accepting, 0);
    },
    close: () => worker.terminate(),
  };
}

/**
 * Sends GET requests at a fixed rate, whether or not earlier ones are answered. Uses plain sockets: an HTTP client takes
 * so much of the core that it is late itself.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Worker } from "node:worker_threads";

const CONNECTIONS = 500;

/** Whenever a request is due, posts when it was due. Node's timers would be up to 1 ms late. */
const CLOCK = `
  const { parentPort, workerData: { startAt, rate, count } } = require("node:worker_threads");
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (let i = 0; i < count; i++) {
    const dueAt = startAt + (i * 1_000) / rate;
    const waitMs = dueAt - performance.timeOrigin - performance.now();
    if (waitMs > 0) Atomics.wait(cell, 0, 0, waitMs);
    parentPort.postMessage(dueAt);
  }`;

/** In ms, in ascending order. Both count from the time at which a request should have been sent. */
export interface Times {
  readonly answered: readonly number[];
  readonly sent: readonly number[];
}

const now = () => performance.timeOrigin + performance.now();

/** Sends requests to `url` at `rate` per second. Fails if one fails. */
export async function sendAtRate(
  url: string,
  { rate, seconds, toPath }: { rate: number; seconds: number; toPath: () => string },
): Promise<Times> {
  const answered: number[] = [];
  const sent: number[] = [];
  const waiting: number[] = [];
  const dueTimes = new Map<Socket, number>();
  const { hostname, port } = new URL(url);
  const count = rate * seconds;
  const { promise: finished, resolve: finish, reject: fail } = Promise.withResolvers<undefined>();

  const sockets = Array.from({ length: CONNECTIONS }, () =>
    connect(Number(port), hostname).setNoDelay().setEncoding("latin1"),
  );
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const free = [...sockets];

  function sendDue(): void {
    while (waiting.length > 0 && free.length > 0) {
      const dueAt = waiting.shift()!;
      // The one that has been idle for longest, so that the server closes none.
      const socket = free.shift()!;
      dueTimes.set(socket, dueAt);
      sent.push(now() - dueAt);
      const address = Array.from({ length: 3 }, () => Math.floor(Math.random() * 256)).join(".");
      socket.write(`GET ${toPath()} HTTP/1.1\r\nhost: ${hostname}\r\nx-forwarded-for: 10.${address}\r\n\r\n`);
    }
  }

  function receive(socket: Socket, text: string): void {
    const [head = "", body = ""] = text.split("\r\n\r\n");
    const isWhole = Number(/content-length: (\d+)/i.exec(head)?.[1]) === body.length;
    if (!head.startsWith("HTTP/1.1 200 ") || !isWhole) {
      fail(new Error(`unexpected response: ${text}`));
      return;
    }
    answered.push(now() - dueTimes.get(socket)!);
    free.push(socket);
    if (answered.length === count) finish(undefined);
    else sendDue();
  }

  for (const socket of sockets)
    socket
      .on("error", fail)
      .on("end", () => {
        fail(new Error("the server closed a connection"));
      })
      .on("data", (text: string) => {
        receive(socket, text);
      });
  const clock = new Worker(CLOCK, { eval: true, workerData: { startAt: now() + 100, rate, count } });
  clock.on("error", fail).on("message", (dueAt: number) => {
    waiting.push(dueAt);
    sendDue();
  });
  try {
    await finished;
  } finally {
    await clock.terminate();
    for (const socket of sockets) socket.destroy();
  }
  const ascending = (times: number[]) => times.sort((a, b) => a - b);
  return { answered: ascending(answered), sent: ascending(sent) };
}

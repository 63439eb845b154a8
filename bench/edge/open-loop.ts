/**
 * Sends GET requests at a fixed rate, whether or not earlier ones are answered. Uses plain sockets: an HTTP client takes
 * so much of the core that it is late itself.
 */
import { connect, type Socket } from "node:net";
import { Worker } from "node:worker_threads";

const MAX_CONNECTIONS = 500;
/** So many that the rate limit refuses none, and so few that they take little of its memory. */
const CLIENT_ADDRESSES = 20_000;

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

/** Sends requests for `seconds`. Opens a connection whenever none is free, and keeps all. Fails if a request fails. */
export interface OpenLoop {
  send(options: { rate: number; seconds: number; toPath: () => string }): Promise<Times>;
  close(): void;
}

const now = () => performance.timeOrigin + performance.now();

export function createOpenLoop(url: string): OpenLoop {
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  const free: Socket[] = [];
  let receive: (socket: Socket, text: string) => void;
  let fail: (error: Error) => void;

  function open(): Socket | undefined {
    if (sockets.length === MAX_CONNECTIONS) return undefined;
    const socket = connect(Number(port), hostname).setNoDelay().setEncoding("latin1");
    sockets.push(socket);
    return socket
      .on("error", (error) => {
        fail(error);
      })
      .on("end", () => {
        fail(new Error("the server closed a connection"));
      })
      .on("data", (text: string) => {
        receive(socket, text);
      });
  }

  async function send({ rate, seconds, toPath }: Parameters<OpenLoop["send"]>[0]): Promise<Times> {
    const answered: number[] = [];
    const sent: number[] = [];
    const waiting: number[] = [];
    const dueTimes = new Map<Socket, number>();
    const count = rate * seconds;
    const { promise: finished, resolve: finish, reject } = Promise.withResolvers<undefined>();
    fail = reject;

    function sendDue(): void {
      while (waiting.length > 0) {
        // The one that has been idle for longest, so that the server closes none.
        const socket = free.shift() ?? open();
        if (!socket) return;
        const dueAt = waiting.shift()!;
        dueTimes.set(socket, dueAt);
        sent.push(now() - dueAt);
        const client = Math.floor(Math.random() * CLIENT_ADDRESSES);
        const address = `10.0.${client >> 8}.${client & 255}`;
        socket.write(`GET ${toPath()} HTTP/1.1\r\nhost: ${hostname}\r\nx-forwarded-for: ${address}\r\n\r\n`);
      }
    }

    receive = (socket, text) => {
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
    };

    const clock = new Worker(CLOCK, { eval: true, workerData: { startAt: now() + 100, rate, count } });
    clock.on("error", fail).on("message", (dueAt: number) => {
      waiting.push(dueAt);
      sendDue();
    });
    try {
      await finished;
    } finally {
      await clock.terminate();
    }
    const ascending = (times: number[]) => times.sort((a, b) => a - b);
    return { answered: ascending(answered), sent: ascending(sent) };
  }

  return {
    send,
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

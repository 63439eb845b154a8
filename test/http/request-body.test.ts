import { EventEmitter, once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import type { HandleNode } from "../../src/http/router.ts";
import { listen } from "../../src/http/server.ts";
import { createLogger } from "../../src/observability/log.ts";

const FLOOD_BYTES = 16_000_000;

/** Starts a server with this handler, and connects to it. The connection stays open for sending. */
async function start(handle: HandleNode) {
  let serverSide: Socket | undefined;
  const server = await listen(
    {
      handle(request, response, context) {
        serverSide = request.socket;
        return handle(request, response, context);
      },
      writeRefusal: ({ status }) => `HTTP/1.1 ${status} Refused\r\n\r\n`,
      log: createLogger("silent"),
    },
    { host: "127.0.0.1", port: 0 },
  );
  const { hostname, port } = new URL(server.url);
  const socket = connect({
    host: hostname,
    port: Number(port),
    allowHalfOpen: true,
    noDelay: true,
  });
  onTestFinished(() => {
    socket.destroy();
    return server.close();
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  let received = "";
  socket.on("data", (bytes: Buffer) => (received += bytes.toString())).on("error", () => undefined);
  return {
    socket,
    received: () => received,
    statuses: () =>
      [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status)),
    bytesRead: () => serverSide!.bytesRead,
    /** Sends chunks of one byte until the server closes the connection, or all are sent. */
    async flood() {
      const chunks = "1\r\nx\r\n".repeat(10_000);
      for (let sent = 0; sent < FLOOD_BYTES && !socket.closed; sent += chunks.length)
        if (!socket.write(chunks))
          await Promise.race([once(socket, "drain").catch(() => undefined), closed]);
      await closed;
    },
  };
}

const head = (header: string) => `POST / HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n`;
const CHUNKED = head("Transfer-Encoding: chunked");
const withLength = (length: number) => head(`Content-Length: ${length}`);

const refuse: HandleNode = (_request, response) => {
  response.writeHead(404).end("refused");
  return Promise.resolve();
};
const readAll: HandleNode = async (request, response) => {
  let length = 0;
  for await (const chunk of request) length += (chunk as Buffer).length;
  response.end(`${length} bytes`);
};

it.each([
  ["a body of unknown length", CHUNKED],
  ["a long body", withLength(FLOOD_BYTES)],
])("a refusal of %s closes the connection, and the rest is not read", async (_name, text) => {
  const { socket, flood, received, statuses, bytesRead } = await start(refuse);
  socket.write(text);
  await flood();
  expect(statuses()).toEqual([404]);
  expect(received()).toMatch(/^connection: close\r$/im);
  expect(received()).toContain("refused");
  expect(bytesRead()).toBeLessThan(1_000_000);
});

it("a refusal of a short body leaves the connection open, even if the body arrives later", async () => {
  const { socket, statuses } = await start(refuse);
  socket.write(withLength(16_384));
  await expect.poll(statuses).toEqual([404]);
  socket.write("x".repeat(16_384) + withLength(0));
  await expect.poll(statuses).toEqual([404, 404]);
});

it("a refused body that arrives in many pieces ends the connection", async () => {
  let request: Parameters<HandleNode>[0] | undefined;
  const { socket, statuses } = await start((...call) => {
    [request] = call;
    return refuse(...call);
  });
  socket.write(withLength(16_384));
  await expect.poll(statuses).toEqual([404]);
  let pieces = 0;
  for (; pieces < 16_384 && socket.readable; pieces++) {
    const { bytesRead } = request!.socket;
    socket.write("x");
    await expect
      .poll(() => request!.socket.bytesRead > bytesRead || !socket.readable, { interval: 1 })
      .toBe(true);
  }
  expect(pieces).toBeLessThan(300);
});

it("a body in many pieces is read if there are at most 256", async () => {
  const { socket, received, statuses } = await start(readAll);
  socket.write(`${CHUNKED}${"1\r\nx\r\n".repeat(256)}0\r\n\r\n`);
  await expect.poll(received).toContain("256 bytes");
  expect(received()).not.toMatch(/^connection: close\r$/im);
  socket.write(`${CHUNKED}${"1\r\nx\r\n".repeat(257)}0\r\n\r\n`);
  await once(socket, "end");
  expect(statuses()).toEqual([200, 413]);
});

it("a body in packets of one byte is not read to its end", async () => {
  const arrived = new EventEmitter();
  const { socket, statuses } = await start((request) => {
    request.on("data", () => arrived.emit("piece"));
    return Promise.resolve();
  });
  socket.write(withLength(16_384));
  for (let i = 0; i < 256; i++) {
    const piece = once(arrived, "piece");
    socket.write("x");
    await piece;
  }
  expect(statuses()).toEqual([]);
  socket.write("x");
  await once(socket, "end");
  expect(statuses()).toEqual([413]);
});

it("nothing of a body that no handler reads is buffered beyond the limit of pieces", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  let buffered: number | undefined;
  const { flood, socket, statuses, bytesRead } = await start(async (request) => {
    await released;
    buffered = request.readableLength;
  });
  socket.write(CHUNKED);
  await flood();
  release(undefined);
  await expect.poll(() => buffered).toBe(256);
  expect(statuses()).toEqual([413]);
  expect(bytesRead()).toBeLessThan(1_000_000);
});

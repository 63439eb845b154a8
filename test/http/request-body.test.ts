import { once } from "node:events";
import { Response } from "@whatwg-node/fetch";
import { expect, it, onTestFinished } from "vitest";
import { createIdentifyClient } from "../../src/http/client-address.ts";
import { CONNECTION_LIMITS, listen, type Responder } from "../../src/http/server.ts";
import { createLogger } from "../../src/observability/log.ts";
import { dial } from "../support/raw-request.ts";

const FLOOD_BYTES = 16_000_000;

/** Starts a server with this handler, and connects to it. The connection stays open for sending. */
async function start(fetch: Responder["fetch"], lingerMs = CONNECTION_LIMITS.lingerMs) {
  const server = await listen(
    {
      fetch,
      identifyClient: createIdentifyClient([], [], () => undefined),
      log: createLogger("silent"),
    },
    { host: "127.0.0.1", port: 0 },
    { ...CONNECTION_LIMITS, lingerMs },
  );
  const connection = await dial(server.url, { allowHalfOpen: true, noDelay: true });
  const { socket, closed } = connection;
  onTestFinished(() => {
    socket.destroy();
    return server.close();
  });
  return {
    ...connection,
    /** Sends chunks of one byte until the server closes the connection. */
    async flood() {
      const chunks = "1\r\nx\r\n".repeat(10_000);
      while (!socket.closed)
        if (!socket.write(chunks))
          await Promise.race([once(socket, "drain").catch(() => undefined), closed()]);
      await closed();
    },
  };
}

const head = (header: string) => `POST / HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n`;
const CHUNKED = head("Transfer-Encoding: chunked");
const withLength = (length: number) => head(`Content-Length: ${length}`);

const refuse = () => Promise.resolve(new Response("refused", { status: 404 }));
const readAll: Responder["fetch"] = async (_request, { readBody }) => {
  const body = await readBody(FLOOD_BYTES);
  return body === "too large"
    ? new Response("too large", { status: 413 })
    : new Response(`${body.length} bytes`);
};

it.each([
  ["a body of unknown length", CHUNKED],
  ["a long body", withLength(FLOOD_BYTES)],
])("a refusal of %s is sent at once, and the connection closes soon", async (_name, text) => {
  const { socket, statuses, received } = await start(refuse);
  const ended = once(socket, "end");
  socket.write(text);
  await expect.poll(statuses).toEqual([404]);
  expect(received()).toContain("refused");
  await ended;
  expect(statuses()).toEqual([404]);
});

it.each([
  ["a body of unknown length", CHUNKED],
  ["a long body", withLength(1e15)],
])("a caller who sends %s without end is disconnected", async (_name, text) => {
  for (const handle of [refuse, readAll]) {
    const { socket, flood, statuses } = await start(handle, 100);
    socket.write(text);
    await flood();
    expect(statuses()).toHaveLength(1);
  }
});

it("a body in many pieces is read if there are at most 256", async () => {
  const { socket, received, statuses } = await start(readAll);
  socket.write(`${CHUNKED}${"1\r\nx\r\n".repeat(256)}0\r\n\r\n`);
  await expect.poll(received).toContain("256 bytes");
  socket.write(`${CHUNKED}${"1\r\nx\r\n".repeat(257)}0\r\n\r\n`);
  await expect.poll(statuses).toEqual([200, 413]);
});

it("a long body that arrives soon after its refusal leaves the connection open", async () => {
  const { socket, statuses } = await start(refuse, 600_000);
  socket.write(withLength(900_000));
  await expect.poll(statuses).toEqual([404]);
  socket.write("x".repeat(900_000) + withLength(0));
  await expect.poll(statuses).toEqual([404, 404]);
});

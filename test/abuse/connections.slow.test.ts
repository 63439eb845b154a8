import { connect, type Socket } from "node:net";
import { afterEach, expect, it, onTestFinished } from "vitest";
import { eventually } from "../support/eventually.ts";
import { startProduction } from "../support/production.ts";
import { startTestSandbox } from "../support/sandbox.ts";

/** A replica has 768 MiB. */
const MOST_BYTES = 600_000_000;

const sockets = new Set<Socket>();
function leave(): void {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
}
afterEach(leave);

/** Opens connections, a hundred at a time, and sends a text on each. */
async function open(url: string, count: number, text: string): Promise<Socket[]> {
  const { hostname, port } = new URL(url);
  const opened: Socket[] = [];
  for (let first = 0; first < count; first += 100)
    opened.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(100, count - first) }, async () => {
          const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
          sockets.add(socket);
          socket.on("error", () => undefined);
          socket.write(text);
          await new Promise((resolve) => socket.once("connect", resolve).once("close", resolve));
          return socket;
        }),
      )),
    );
  return opened;
}

const post = (path: string, length: number, body = "", accept = "application/json") =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: ${accept}\r\nContent-Length: ${length}\r\n\r\n${body}`;
const LIVEZ = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
const SUBSCRIPTION = JSON.stringify({
  query: 'subscription { wallet(handle: "creator") { balance { total } } }',
});

const attacks: [string, (url: string) => Promise<unknown>][] = [
  ["10,000 idle connections", (url) => open(url, 10_000, "")],
  ["10,000 requests whose headers never end", (url) => open(url, 10_000, "GET / HTTP/1.1\r\nX: ")],
  [
    "500 bodies that arrive byte by byte",
    async (url) => {
      const senders = await open(url, 500, post("/collect", 16_000, "{"));
      const timer = setInterval(() => {
        for (const socket of senders) if (socket.writable) socket.write(" ");
      }, 100);
      onTestFinished(() => {
        clearInterval(timer);
      });
    },
  ],
  [
    "1,000 callers of a stream who read nothing",
    (url) =>
      open(url, 1_000, post("/graphql", SUBSCRIPTION.length, SUBSCRIPTION, "text/event-stream")),
  ],
  [
    "100 connections with 1,000 pipelined requests each whose answers nobody reads",
    (url) => open(url, 100, LIVEZ.repeat(1_000)),
  ],
  [
    "1,000 half-open connections with half a request",
    async (url) => {
      for (const socket of await open(url, 1_000, post("/collect", 100, "{"))) socket.end();
    },
  ],
];

it("an honest caller has an answer within a second, and memory is bounded, in each attack", async () => {
  const sandbox = await startTestSandbox();
  onTestFinished(() => sandbox.close());
  const { client } = await startProduction(sandbox, { RATE_LIMIT_MAX: "1000000" });
  for (const [name, attack] of attacks) {
    await attack(client.url);
    // Once: a busy machine may be slower.
    await eventually(async () => {
      const startedAt = performance.now();
      expect([name, (await client.lookup("creator")).status]).toEqual([name, 200]);
      expect(performance.now() - startedAt).toBeLessThan(1_000);
    });
    const { body } = await client.request("/metrics");
    const [, bytes] = /^process_resident_memory_bytes (\d+)$/m.exec(body) ?? [];
    expect([name, Number(bytes) < MOST_BYTES]).toEqual([name, true]);
    leave();
  }
});

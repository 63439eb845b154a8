import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect } from "vitest";
import { sendRaw } from "../support/raw-request.ts";
import { hold } from "../support/sandbox.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { startWorld } from "../support/world.ts";

const it = withWorld(
  { RATE_LIMIT_MAX: "1000" },
  { requestTimeout: 600_000, headersTimeout: 600_000 },
);

const chunked = "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n";

/** Sends the text, and leaves the connection open. */
function send(text: string) {
  const { hostname, port } = new URL(world.url);
  const socket = connect(Number(port), hostname);
  let received = "";
  socket.on("data", (chunk: Buffer) => (received += chunk.toString()));
  socket.write(text);
  return {
    socket,
    received: () => received,
    statuses: () => [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, each]) => Number(each)),
  };
}

describe("a request that is not valid HTTP", () => {
  it.each([
    ["with bytes that are not HTTP", "\x16\x03\x01\x02\r\n\r\n", 400],
    ["with an unknown method", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 400],
    ["without Host", "GET /livez HTTP/1.1\r\n\r\n", 400],
    ["with a Host that is none", "GET /livez HTTP/1.1\r\nHost: [x\r\n\r\n", 400],
    ["with two Hosts", "GET /livez HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n", 400],
    ["with long headers", `GET / HTTP/1.1\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, 431],
    ["with malformed chunks", `POST /collect HTTP/1.1\r\n${chunked}zz\r\n`, 400],
    ["with malformed chunks to an unknown path", `POST /nothing HTTP/1.1\r\n${chunked}ZZ\r\n`, 400],
    [
      "with malformed chunks after a whole one",
      `POST /collect HTTP/1.1\r\n${chunked}2\r\n{}\r\nZZ\r\n`,
      400,
    ],
    ["with malformed chunks to GET", `GET /livez HTTP/1.1\r\n${chunked}ZZ\r\n`, 400],
    ["with a malformed trailer", `POST /nothing HTTP/1.1\r\n${chunked}0\r\nX Y\r\n\r\n`, 400],
    [
      "with an unknown transfer encoding",
      "POST /nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nab",
      400,
    ],
    [
      "with two lengths",
      "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
      400,
    ],
    [
      "with a length and chunks",
      `POST /nothing HTTP/1.1\r\nContent-Length: 2\r\n${chunked}0\r\n\r\n`,
      400,
    ],
    ["of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
    [
      "with long chunk extensions",
      `POST /collect HTTP/1.1\r\n${chunked}2;${"x".repeat(20_000)}`,
      413,
    ],
    ["with a raw byte in the path", "GET /caf\xe9 HTTP/1.1\r\nHost: x\r\n\r\n", 400],
    [
      "with raw UTF-8 as the handle",
      "GET /wallet/lookup?handle=café HTTP/1.1\r\nHost: x\r\n\r\n",
      400,
    ],
    [
      "with raw UTF-8 beside the handle",
      "GET /wallet/lookup?handle=a&mint=é HTTP/1.1\r\nHost: x\r\n\r\n",
      400,
    ],
  ])("%s gets the error body, and its connection closes", async (_, text, status) => {
    const answer = await sendRaw(
      world.url,
      text.includes("caf\xe9 ") ? Buffer.from(text, "latin1") : text,
    );
    expect(answer.statuses).toEqual([status]);
    expect(answer.headers).toMatchObject({
      connection: "close",
      "content-type": "application/json; charset=utf-8",
      "content-length": String(answer.body.length),
    });
    expect(answer.body).toMatch(
      /\{"error":"BAD_REQUEST","message":"The request cannot be read: [^"\\]/,
    );
    expect(answer.body).not.toMatch(/\bat \w+ \(/);
  });

  it.each(["end", "resetAndDestroy"] as const)(
    "harms nobody when its caller is gone before the answer (%s)",
    async (leave) => {
      const { port } = new URL(world.url);
      for (let i = 0; i < 100; i++) {
        const socket = connect(Number(port), "127.0.0.1").on("error", () => undefined);
        await once(socket, "connect");
        socket.resume().write(`${i % 4 < 2 ? "BREW /" : "CONNECT x:80"} HTTP/1.1\r\n\r\n`);
        if (i % 2) await new Promise(setImmediate);
        socket[leave]();
        await once(socket, "close");
      }
      expect((await world.request("/livez")).status).toBe(200);
    },
  );

  it("is answered while its handler waits for the body", async () => {
    const { socket, received, statuses } = send(
      `POST /collect HTTP/1.1\r\nExpect: 100-continue\r\n${chunked}`,
    );
    const closed = once(socket, "close");
    await expect.poll(statuses).toEqual([100]);
    socket.write("ZZ\r\n");
    await closed;
    expect(statuses()).toEqual([100, 400]);
    expect(received()).toContain('{"error":"BAD_REQUEST"');
  });

  it("gets no second answer, and its connection closes, if it is malformed after it was answered", async () => {
    const { socket, received, statuses } = send(`POST /nothing HTTP/1.1\r\n${chunked}`);
    const closed = once(socket, "close");
    await expect.poll(received).toContain('"NOT_FOUND"');
    socket.write("ZZ\r\n");
    await closed;
    expect(statuses()).toEqual([404]);
  });

  it("that takes too long gets 408", async () => {
    const slow = await startWorld(
      {},
      { requestTimeout: 100, headersTimeout: 100, connectionsCheckingInterval: 50 },
    );
    try {
      for (const text of ["GET / HTTP/1.1\r\nX: ", `POST /collect HTTP/1.1\r\n${chunked}5\r\nab`]) {
        const { statuses, body } = await sendRaw(slow.url, text);
        expect(statuses).toEqual([408]);
        expect(body).toContain('{"error":"BAD_REQUEST"');
      }
    } finally {
      await slow.close();
    }
  });

  it("is not answered, and its connection closes, while an earlier response is pending", async () => {
    const release = hold(world.sandbox.social);
    const calls = world.sandbox.social.calls.length;
    const { socket, received } = send(
      "GET /wallet/lookup?handle=artist HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    const closed = once(socket, "close");
    await expect.poll(() => world.sandbox.social.calls.length).toBe(calls + 1);
    socket.write("BREW / HTTP/1.1\r\n\r\n");
    await closed;
    release();
    expect(received()).toBe("");
  });

  it("is answered after earlier responses are sent", async () => {
    const { socket, received, statuses } = send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    const closed = once(socket, "close");
    await expect.poll(received).toContain('"ok"');
    socket.write("BREW / HTTP/1.1\r\n\r\n");
    await closed;
    expect(statuses()).toEqual([200, 400]);
  });
});

describe("a request with `Expect: 100-continue`", () => {
  const head = (start: string, length: number) =>
    `${start} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`;

  it.each([
    ["too long a body to collect", head("POST /collect", 16_385), 413],
    ["too long a body to GraphQL", head("POST /graphql", 100_001), 413],
    ["an unknown path", head("POST /nowhere", 10), 404],
    ["a wrong method", head("POST /wallet/lookup", 10), 405],
  ])("and %s is refused without waiting for its body", async (_name, text, status) => {
    const { socket, statuses } = send(text);
    await expect.poll(statuses).toEqual([100, status]);
    socket.destroy();
  });

  it.each([
    ["collect", "POST /collect", { socialId: "1" }, 400],
    ["GraphQL", "POST /graphql", { query: "{ __typename }" }, 200],
  ])("to %s is asked for its body once", async (_name, start, json, status) => {
    const body = JSON.stringify(json);
    const { socket, statuses } = send(head(start, body.length));
    await expect.poll(statuses).toEqual([100]);
    socket.write(body);
    await expect.poll(statuses).toEqual([100, status]);
    socket.destroy();
  });
});

describe("a request with `Upgrade`", () => {
  it.each([
    ["without a body", "GET /livez HTTP/1.1\r\n", "", 200],
    ["with a body", "POST /nowhere HTTP/1.1\r\nContent-Length: 2\r\n", "{}", 404],
  ])(
    "%s is answered, and closes the connection that has further requests",
    async (_name, start, body, status) => {
      const upgrade = `${start}Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${body}`;
      const { statuses, headers } = await sendRaw(
        world.url,
        `${upgrade}GET /livez HTTP/1.1\r\nHost: x\r\n\r\n`,
      );
      expect(statuses).toEqual([status]);
      expect(headers.connection).toBe("close");
    },
  );
});

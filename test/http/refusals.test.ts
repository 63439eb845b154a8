import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect } from "vitest";
import { dial, sendRaw } from "../support/raw-request.ts";
import { hold } from "../support/sandbox.ts";
import { withWorld, world } from "../support/fixtures.ts";

const it = withWorld(
  { RATE_LIMIT_MAX: "1000" },
  { requestTimeout: 600_000, headersTimeout: 600_000 },
);

const chunked = "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n";

/** Sends the text, and leaves the connection open. */
async function send(text: string) {
  const connection = await dial(world.url);
  connection.socket.write(text);
  return connection;
}

describe("a request that is not valid HTTP", () => {
  it.each([
    ["with bytes that are not HTTP", "\x16\x03\x01\x02\r\n\r\n", 400],
    ["with an unknown method", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 400],
    ["without Host", "GET /livez HTTP/1.1\r\n\r\n", 400],
    ["with a Host that is none", "GET /livez HTTP/1.1\r\nHost: [x\r\n\r\n", 400],
    ["with two Hosts", "GET /livez HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n", 400],
    ["with two Hosts, one empty", "GET / HTTP/1.1\r\nHost: x\r\nHost:\r\n\r\n", 400],
    ["with long headers", `GET / HTTP/1.1\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, 431],
    ["with malformed chunks", `POST /collect HTTP/1.1\r\n${chunked}zz\r\n`, 400],
    [
      "with long chunk extensions",
      `POST /collect HTTP/1.1\r\n${chunked}2;${"x".repeat(20_000)}`,
      413,
    ],
    [
      "with raw UTF-8 as the handle",
      "GET /wallet/lookup?handle=café HTTP/1.1\r\nHost: x\r\n\r\n",
      400,
    ],
  ])("%s gets the error body, and its connection closes", async (_, text, status) => {
    const answer = await sendRaw(world.url, text);
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
    const { socket, received, statuses, closed } = await send(
      `POST /collect HTTP/1.1\r\nExpect: 100-continue\r\n${chunked}`,
    );
    await expect.poll(statuses).toEqual([100]);
    socket.write("ZZ\r\n");
    await closed();
    expect(statuses()).toEqual([100, 400]);
    expect(received()).toContain('{"error":"BAD_REQUEST"');
  });

  it("gets no second answer, and its connection closes, if it is malformed after it was answered", async () => {
    const { socket, received, statuses, closed } = await send(
      `POST /nothing HTTP/1.1\r\n${chunked}`,
    );
    await expect.poll(received).toContain('"NOT_FOUND"');
    socket.write("ZZ\r\n");
    await closed();
    expect(statuses()).toEqual([404]);
  });

  it("is not answered, and its connection closes, while an earlier response is pending", async () => {
    const release = hold(world.sandbox.social);
    const calls = world.sandbox.social.calls.length;
    const { socket, received, closed } = await send(
      "GET /wallet/lookup?handle=artist HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    await expect.poll(() => world.sandbox.social.calls.length).toBe(calls + 1);
    socket.write("BREW / HTTP/1.1\r\n\r\n");
    await closed();
    release();
    expect(received()).toBe("");
  });
});

describe("a request with `Expect: 100-continue`", () => {
  const head = (start: string, length: number) =>
    `${start} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`;

  it.each([
    ["too long a body to collect", head("POST /collect", 16_385), 413],
    ["too long a body to GraphQL", head("POST /graphql", 100_001), 413],
    ["an unknown path", head("POST /nowhere", 10), 404],
  ])("and %s is refused without waiting for its body", async (_name, text, status) => {
    const { statuses } = await send(text);
    await expect.poll(statuses).toEqual([100, status]);
  });

  it.each([
    ["collect", "POST /collect", { socialId: "1" }, 400],
    ["GraphQL", "POST /graphql", { query: "{ __typename }" }, 200],
  ])("to %s is asked for its body once", async (_name, start, json, status) => {
    const body = JSON.stringify(json);
    const { socket, statuses } = await send(head(start, body.length));
    await expect.poll(statuses).toEqual([100]);
    socket.write(body);
    await expect.poll(statuses).toEqual([100, status]);
  });
});

it("a request with `Upgrade` is answered, and closes the connection that has further requests", async () => {
  const get = (headers = "") => `GET /livez HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
  const upgrade = get("Connection: Upgrade\r\nUpgrade: websocket\r\n");
  const { statuses, headers } = await sendRaw(world.url, upgrade + get());
  expect(statuses).toEqual([200]);
  expect(headers.connection).toBe("close");
});

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Response } from "@whatwg-node/fetch";
import { describe, expect, onTestFinished } from "vitest";
import { CONNECTION_LIMITS, listen, type Responder } from "../../src/http/server.ts";
import { dial, sendRaw } from "../support/raw-request.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { hold } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

/** Timeouts that no slow machine reaches, for tests of other behaviour. */
const AMPLE_TIMEOUTS = { headersTimeout: 600_000, requestTimeout: 600_000 };

const it = withWorld({ RATE_LIMIT_MAX: "100000" }, AMPLE_TIMEOUTS);
const sockets: Socket[] = [];

/** Starts a world of the test's own, with these limits. */
async function startLimited(limits: Parameters<typeof startWorld>[1]): Promise<World> {
  const own = await startWorld({ RATE_LIMIT_MAX: "100000" }, limits);
  onTestFinished(() => own.close());
  return own;
}

/** Serves the world's API at another port, where `fetch` may answer instead, until the test ends. */
async function serve(
  limits: Partial<typeof CONNECTION_LIMITS>,
  fetch: Responder["fetch"] = world.gateway.api.fetch,
) {
  const place = { host: "127.0.0.1", port: 0 };
  const server = await listen({ ...world.gateway.api, fetch }, place, {
    ...CONNECTION_LIMITS,
    ...limits,
  });
  const { port } = new URL(server.url);
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await server.close();
  });
  return {
    ...server,
    connect() {
      const socket = connect(Number(port), "127.0.0.1").on("error", () => undefined);
      sockets.push(socket);
      return socket;
    },
  };
}
const answerWith = (body: string) => () => Promise.resolve(new Response(body));

const send = async (text: string, { url } = world) => (await sendRaw(url, text)).statuses;

const post = (path: string, headers: string, body = "") =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n${headers}\r\n\r\n${body}`;
const get = (path: string, headers = "") =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`;

describe("a connection", () => {
  it("that does not finish its headers or its body is closed, and other clients are served", async () => {
    const own = await startLimited({
      ...{ headersTimeout: 300, requestTimeout: 500, connectionsCheckingInterval: 50 },
    });
    const texts = [
      "",
      "GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ",
      post("/collect", "Content-Length: 40", '{"socialId"'),
      post("/graphql", "Transfer-Encoding: chunked", '5\r\n{"que\r\n'),
    ];
    const clients = await Promise.all(Array.from({ length: 80 }, () => dial(own.url)));
    for (const [i, { socket }] of clients.entries()) socket.write(texts[i % texts.length]!);
    await expect
      .poll(() => own.lookup("creator").catch(() => undefined))
      .toMatchObject({ status: 200 });
    await Promise.all(clients.map(({ closed }) => closed()));
    for (const { statuses } of clients) expect(statuses()[0] ?? 408).toBe(408);
  });

  it("closes the one that has been idle longest when all are taken", async () => {
    const own = await startLimited({ ...AMPLE_TIMEOUTS, maxConnections: 4 });
    const request = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    const halfSent = await dial(own.url);
    halfSent.socket.write(request.slice(0, 20));
    const clients = [await dial(own.url), await dial(own.url), await dial(own.url)] as const;
    // The first has been idle longest but for its second request.
    for (const i of [0, 1, 2, 0] as const) {
      const answered = clients[i].statuses().length;
      clients[i].socket.write(request);
      await expect.poll(() => clients[i].statuses().length).toBe(answered + 1);
    }
    // One that is only half sent is as good as idle.
    for (const next of [halfSent, clients[1]]) {
      expect(await send(get("/livez"), own)).toEqual([200]);
      await next.closed();
      await dial(own.url);
    }
    for (const client of [clients[0], clients[2]]) expect(client.socket.closed).toBe(false);
  });

  it("is closed at once above maxConnections if all others have a request in flight, and is accepted again after one ends", async () => {
    const own = await startLimited({ ...AMPLE_TIMEOUTS, maxConnections: 3 });
    const release = hold(own.sandbox.social);
    const clients = [await dial(own.url), await dial(own.url), await dial(own.url)];
    for (const [i, { socket }] of clients.entries())
      socket.write(`GET /wallet/lookup?handle=held${i} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await expect.poll(() => own.receivedRequests()).toBe(3);
    expect(await send(get("/livez"), own)).toEqual([]);
    release();
    await expect.poll(() => send(get("/livez"), own)).toEqual([200]);
  });

  it("whose client reads too slowly is cut off", async () => {
    // The system takes a few megabytes at once.
    const server = await serve({ readTimeout: 200 }, answerWith("x".repeat(32_000_000)));
    const socket = server.connect();
    socket.write(get("/"));
    // A client that reads nothing notices the close only when it writes.
    await expect.poll(() => socket.closed || (socket.write("\r\n"), false)).toBe(true);
  });

  it.each([
    ["ASCII", "x".repeat(16_000_000)],
    ["other characters", "あ".repeat(5_400_000)],
  ])(
    "of the oldest response closes when one address waits for too many bytes, and an honest caller is served: %s",
    async (_name, large) => {
      // More than the system takes for a connection that nobody reads.
      const answerLarge = answerWith(large);
      const { api } = world.gateway;
      const server = await serve({ maxBytesPerAddress: 40_000_000 }, (request, connection) =>
        connection.path === "/large" ? answerLarge() : api.fetch(request, connection),
      );
      /** Asks for the large response, and reads nothing after its start. */
      async function ask(address: string) {
        const socket = server.connect();
        socket.write(`GET /large HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${address}\r\n\r\n`);
        await once(socket, "readable");
        let isClosed = false;
        socket.once("close", () => (isClosed = true));
        // A client that reads nothing notices the close only when it writes.
        return () => isClosed || (socket.write("\r\n"), false);
      }
      const first = await ask("192.0.2.1");
      const others = [await ask("192.0.2.1"), await ask("198.51.100.1"), await ask("192.0.2.1")];
      await expect.poll(first).toBe(true);
      expect(others.map((isClosed) => isClosed())).toEqual([false, false, false]);
      expect((await fetch(`${server.url}/wallet/lookup?handle=creator`)).status).toBe(200);
    },
  );

  it("of the oldest unfinished body closes when one address sends too many", async () => {
    const server = await serve({ ...AMPLE_TIMEOUTS, maxBytesPerAddress: 1_000_000 });
    const clients: (() => boolean)[] = [];
    for (let i = 0; i < 15; i++) {
      const socket = server.connect();
      let isClosed = false;
      socket.once("close", () => (isClosed = true)).resume();
      // Nothing reads this body, which counts all the same.
      socket.write(
        post("/graphql", i % 2 ? "Transfer-Encoding: chunked" : "Content-Length: 98000"),
      );
      await once(socket, "connect");
      clients.push(() => isClosed);
    }
    await expect
      .poll(() => clients.map((isClosed) => isClosed()))
      .toEqual([...Array<boolean>(5).fill(true), ...Array<boolean>(10).fill(false)]);
  });

  it("with whole bodies that wait for their turn is closed when they are too many", async () => {
    const server = await serve(
      { ...AMPLE_TIMEOUTS, maxBytesPerAddress: 1_000_000 },
      () => new Promise(() => undefined),
    );
    const socket = server.connect();
    const request =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + "x".repeat(60_000);
    socket.write(request.repeat(20));
    await expect.poll(() => socket.closed).toBe(true);
  });

  it("is closed by a shutdown only after its response has been read", async () => {
    const body = "x".repeat(16_000_000);
    const server = await serve({}, answerWith(body));
    const socket = server.connect();
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => (bytes += chunk.length));
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "data");
    socket.pause();
    const closed = server.close();
    socket.resume();
    await once(socket, "close");
    await closed;
    expect(bytes).toBeGreaterThan(body.length);
  });

  it("with a request whose headers arrive does not delay shutdown, and one with a request in flight does", async () => {
    const own = await startWorld({}, AMPLE_TIMEOUTS);
    const release = hold(own.sandbox.social);
    const [half, unfinished] = [await dial(own.url), await dial(own.url)];
    half.socket.write("GET /livez HTTP/1.1\r\nHost:");
    unfinished.socket.write(post("/collect", "Content-Length: 2", "{"));
    const answered = own.lookup("creator");
    await expect.poll(() => own.sandbox.social.calls.length).toBe(1);
    const closed = own.close();
    await half.closed();
    expect(half.statuses()).toEqual([]);
    unfinished.socket.write("}");
    await unfinished.closed();
    expect(unfinished.statuses()).toEqual([400]);
    release();
    expect((await answered).status).toBe(200);
    await closed;
  });
});

describe("requests behind a slow one on a connection", () => {
  it("wait for their turn, at most a hundred of them", async () => {
    const release = hold(world.sandbox.social);
    const [some, many] = await Promise.all([dial(world.url), dial(world.url)]);
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
    some.socket.write(request("/wallet/lookup?handle=slow") + request("/livez").repeat(100));
    many.socket.write(request("/wallet/lookup?handle=slow") + request("/livez").repeat(102));
    await many.closed();
    expect(many.statuses()).toEqual([]);
    release();
    await expect.poll(() => some.statuses().length).toBe(101);
    expect(
      some
        .statuses()
        .slice(1)
        .every((status) => status === 200),
    ).toBe(true);
  });
});

describe("a malformed request", () => {
  const body = JSON.stringify({ socialId: "1" });

  it("cannot smuggle another request", async () => {
    const inner = `POST /collect HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    world.forgetCalls();
    const smuggled = await send(
      `POST /collect HTTP/1.1\r\nHost: x\r\nContent-Length: ${inner.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    );
    expect(smuggled).toEqual([400]);
    expect(world.sandbox.rpc.calls).toHaveLength(0);
  });

  it.each([
    ["CONNECT", "CONNECT creator:443 HTTP/1.1\r\nHost: x\r\n\r\n", [undefined]],
    ["an unknown expectation", get("/livez", "Expect: money\r\n"), [417]],
    ["OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", [204]],
    ["TRACE", "TRACE /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", [405]],
    ["HTTP/1.0", "GET /livez HTTP/1.0\r\n\r\n", [200]],
    ["a path named __proto__", get("/__proto__"), [404]],
  ])("of an unusual form gets a plain response: %s", async (_name, text, [expected]) => {
    expect((await send(text))[0]).toBe(expected);
  });
});

describe("every response", () => {
  const answers: [string, () => Promise<{ headers: Headers }>][] = [
    ["a lookup", () => world.lookup("creator")],
    ["a refused lookup", () => world.lookup("no!")],
    ["GraphQL", () => world.graphql("{ __typename }")],
    ["GraphQL that is not JSON", () => world.request("/graphql", { method: "POST", body: "x" })],
    ["an unknown path", () => world.request("/nowhere")],
    ["a preflight", () => world.request("/collect", { method: "OPTIONS" })],
    ["/livez", () => world.request("/livez")],
    ["the first page", () => world.request("/")],
    ["GraphiQL", () => world.request("/graphql", { headers: { accept: "text/html" } })],
    ["an asset", () => world.request("/assets/page.css")],
  ];
  it.each(answers)(
    "to %s has security headers, and reveals nothing about the server",
    async (_name, ask) => {
      const { headers } = await ask();
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'/);
      expect(headers.get("content-security-policy")).toMatch(/frame-ancestors 'none'/);
      expect(headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
      for (const name of ["server", "x-powered-by", "via", "x-runtime"])
        expect(headers.get(name), name).toBeNull();
      expect(JSON.stringify([...headers])).not.toMatch(/yoga|node|express|fastify/i);
    },
  );
});

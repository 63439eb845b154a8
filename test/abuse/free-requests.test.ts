import { createHook } from "node:async_hooks";
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { atOnce, from } from "../support/client.ts";
import { startWorld, type World } from "../support/world.ts";

/** The address that has used up its limit. */
const REFUSED = from("203.0.113.9");
const RATE_LIMIT_MAX = 5;

let world: World;
beforeAll(async () => {
  // No connection is closed because it takes long.
  const limits = { headersTimeout: 600_000, requestTimeout: 600_000 };
  world = await startWorld({ RATE_LIMIT_MAX: String(RATE_LIMIT_MAX) }, limits);
});
beforeEach(() => atOnce(RATE_LIMIT_MAX, () => world.lookup("creator", REFUSED)));
afterAll(() => world.close());

describe("a body in chunks of one byte", () => {
  const CHUNKS = "1\r\nx\r\n".repeat(10_000);
  const FLOOD = 16_000_000;

  it.each([
    ["to an unknown path", "POST /nowhere", {}, [404]],
    ["with a wrong method", "POST /wallet/lookup", {}, [405]],
    ["of a preflight", "OPTIONS /collect", {}, [204]],
    ["of a collect above the limit", "POST /collect", REFUSED, [429]],
    ["of an operation above the limit", "POST /graphql", REFUSED, [429]],
    ["of a health check", "GET /livez", {}, [200]],
    ["of a lookup", "GET /wallet/lookup?handle=creator", from("203.0.113.10"), [200, 413]],
    ["of a collect", "POST /collect", from("203.0.113.11"), [413]],
    ["of an operation", "POST /graphql", from("203.0.113.12"), [413]],
  ])("%s is answered, and not read to its end", async (_name, start, headers, expected) => {
    const { hostname, port } = new URL(world.url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    let received = "";
    socket
      .on("data", (bytes: Buffer) => (received += bytes.toString()))
      .on("error", () => undefined);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const lines = Object.entries({ ...headers, "Content-Type": "application/json" });
    socket.write(
      `${start} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n${lines.map((line) => `${line.join(": ")}\r\n`).join("")}\r\n`,
    );
    let sent = 0;
    for (; sent < FLOOD && !socket.closed; sent += CHUNKS.length)
      if (!socket.write(CHUNKS))
        await Promise.race([once(socket, "drain").catch(() => undefined), closed]);
    socket.destroy();
    expect(expected).toContain(Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1]));
    expect(sent).toBeLessThan(FLOOD);
  });
});

describe("a client that sends 10 MB", () => {
  it.each([
    ["to an unknown path", "/nowhere", 404],
    ["to collect", "/collect", 413],
    ["to GraphQL", "/graphql", 413],
  ])("%s receives the answer", async (_name, path, expected) => {
    const body = "x".repeat(10_000_000);
    const headers = { "content-type": "application/json" };
    const answers = await atOnce(3, () => world.request(path, { method: "POST", headers, body }));
    for (const { status } of answers) expect(status).toBe(expected);
  });
});

describe("an `Accept` header", () => {
  const page = async (accept: string) =>
    (await world.request("/graphql", { headers: { accept } })).headers;

  it("that is longer than any client's is ignored", async () => {
    const types = "text/html,".repeat(50);
    expect((await page(types.slice(0, -1))).get("content-type")).toContain("text/html");
    expect((await page(`${types}text/html`)).get("content-type")).toContain("application/json");
    const answer = await world.request("/graphql?query={__typename}", {
      headers: { accept: "a/b,".repeat(3_000) },
    });
    expect(answer).toMatchObject({ status: 200, body: { data: { __typename: "Query" } } });
  });
});

describe("a file whose response is above 400 kB", () => {
  const LARGE = "/assets/graphiql-viewer.js";
  const get = (path: string, headers: Record<string, string>, method = "GET") =>
    world.request(path, { method, headers });

  it.each([
    ["compressed", { "accept-encoding": "gzip" }],
    ["not compressed", { "accept-encoding": "identity" }],
    ["of which only a part is requested", { "accept-encoding": "gzip", range: "bytes=0-9" }],
  ])("counts against the rate limit: %s", async (_name, headers) => {
    const first = await get(LARGE, headers);
    expect([first.status, first.headers.get("ratelimit")]).toMatchObject([
      200,
      expect.stringMatching(/^"address";r=4;/),
    ]);
    const { status, body, headers: received } = await get(LARGE, { ...headers, ...REFUSED });
    expect([status, body.error]).toEqual([429, "RATE_LIMITED"]);
    expect(received.has("retry-after")).toBe(true);
    expect(received.get("cache-control")).toBe("no-store");
  });

  it("does not count if it is not sent: 304, HEAD", async () => {
    const { headers } = await get(LARGE, {});
    const unchanged = await get(LARGE, { ...REFUSED, "if-none-match": headers.get("etag")! });
    const head = await get(LARGE, REFUSED, "HEAD");
    expect([unchanged.status, head.status]).toEqual([304, 200]);
    for (const answer of [unchanged, head]) expect(answer.headers.has("ratelimit")).toBe(false);
  });

  it("is not one that is smaller when it is compressed", async () => {
    const { status, headers } = await get("/openapi.json", {
      ...REFUSED,
      "accept-encoding": "gzip",
    });
    expect([status, headers.has("ratelimit")]).toEqual([200, false]);
  });
});

describe("a page", () => {
  /** How often something was compressed meanwhile. */
  async function compressions(run: () => Promise<unknown>): Promise<number> {
    let count = 0;
    const hook = createHook({
      init(_id, type) {
        if (type === "ZLIB") count++;
      },
    });
    hook.enable();
    await run();
    hook.disable();
    return count;
  }
  const get =
    (path: string, isCompressed = true) =>
    async () => {
      // `fetch` decompresses, which would count, too.
      const { hostname, port } = new URL(world.url);
      const socket = connect(Number(port), hostname);
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: gzip\r\n\r\n`,
      );
      let received = "";
      for await (const bytes of socket) received += (bytes as Buffer).toString("latin1");
      expect(/^content-encoding: gzip\r$/im.test(received)).toBe(isCompressed);
    };
  const times = (count: number, run: () => Promise<unknown>) => async () => {
    for (let i = 0; i < count; i++) await run();
  };

  it.each(["/", "/docs", "/schema.graphql", "/errors.md"])(
    "at %s is compressed once, not for each request",
    async (path) => {
      expect(await compressions(times(10, get(path)))).toBe(1);
      expect(await compressions(times(10, get(path)))).toBe(0);
    },
  );

  it.each(["/?handle=creator", "/?socialId=1", "/?handle=no-handle"])(
    "at %s, of which callers can make many, is not compressed",
    async (path) => {
      expect(await compressions(times(10, get(path, false)))).toBe(0);
    },
  );
});

describe("requests above the rate limit", () => {
  it("write no lines", async () => {
    const info = () => world.logLines.filter((line) => JSON.parse(line).level >= 30).length;
    const before = info();
    for (let i = 0; i < 20; i++) {
      expect((await world.lookup("creator", REFUSED)).status).toBe(429);
      expect((await world.collect("1", REFUSED)).status).toBe(429);
      expect((await world.graphql("{ __typename }", {}, REFUSED)).status).toBe(429);
    }
    expect(info()).toBe(before);
  });
});

import { connect } from "node:net";
import { describe, expect, onTestFinished } from "vitest";
import { hold } from "../support/sandbox.ts";
import { createSkipTime } from "../support/skip-time.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { startWorld } from "../support/world.ts";

const it = withWorld({ SOCIAL_CACHE_SECONDS: "0" });

/** An error body of the contract. */
const error = (code: string, message: unknown = expect.any(String)) => ({ error: code, message });
const problem = (status: number, body: object | string, headers: Record<string, string> = {}) => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: typeof body === "string" ? body : JSON.stringify(body),
});

describe("GET /wallet/lookup", () => {
  it("returns the address, the id as a string, and the balances", async () => {
    const { id, address } = world.account("creator");
    const { status, headers, body } = await world.lookup("creator");
    expect(status).toBe(200);
    expect(body).toEqual({
      handle: "creator",
      socialId: id,
      address,
      derivation: {
        program: world.sandbox.env.ESCROW_PROGRAM_ID,
        seeds: [world.sandbox.env.ESCROW_SEED, id],
        bump: 254,
      },
      balance: {
        vault: "3.1000",
        pda: "5.2000",
        total: "8.3000",
        withdrawable: "8.1340",
        lamports: {
          vault: "3100000000",
          pda: "5200000000",
          total: "8300000000",
          withdrawable: "8134000000",
        },
      },
      profile: {
        ...{ name: "The Creator", verified: true, followers: 1_284_000 },
        pictureUrl: `${world.sandbox.social.url}/pictures/creator.svg`,
      },
    });
    expect(BigInt(id)).toBeGreaterThan(2n ** 53n);
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("access-control-expose-headers")).toContain("Retry-After");
  });

  it("accepts a handle in any case, and returns the network's spelling", async () => {
    world.sandbox.accounts.push({ ...world.account("artist200"), handle: "Artist200" });
    const { body } = await world.lookup("aRTIST200");
    expect(body).toMatchObject({ handle: "Artist200", socialId: world.account("artist200").id });
  });

  it("shows an empty vault, and one below the minimum to collect, as 0.0000", async () => {
    expect((await world.lookup("newcomer")).body.balance).toMatchObject({
      vault: "0.0000",
      pda: "0.0000",
      total: "0.0000",
      withdrawable: "0.0000",
    });
    expect((await world.lookup("dusty")).body.balance).toMatchObject({
      vault: "0.0000",
      pda: "1.5000",
      total: "1.5000",
      withdrawable: "1.4700",
    });
  });

  it("answers HANDLE_REQUIRED without a handle", async () => {
    for (const query of ["", "?", "?Handle=creator", "?name=creator"]) {
      const { status, body } = await world.request(`/wallet/lookup${query}`);
      expect([status, body]).toEqual([400, error("HANDLE_REQUIRED")]);
    }
  });

  it.each([
    "",
    "@creator",
    "cre ator",
    " creator",
    "creator ",
    "with_underscore",
    "a".repeat(16),
    "crèator",
    "a,b",
    "a\0",
    "٣",
  ])("answers INVALID_HANDLE for %j, without upstream calls", async (handle) => {
    world.forgetCalls();
    const { status, body } = await world.lookup(handle);
    expect([status, body]).toEqual([
      400,
      error("INVALID_HANDLE", expect.stringContaining("1-15 alphanumeric characters")),
    ]);
    expect([world.sandbox.social.calls, world.chainCalls()]).toEqual([[], []]);
  });

  it.each([
    ["@creator", '"@creator"'],
    ['cre"ator\n', String.raw`"cre\"ator\n"`],
    ["x".repeat(5_000), `"${"x".repeat(40)}…"`],
  ])("quotes the received handle, shortened: %j", async (handle, quoted) => {
    const message = `The handle must be 1-15 alphanumeric characters, without the @. Received ${quoted}.`;
    expect((await world.lookup(handle)).body).toEqual(error("INVALID_HANDLE", message));
    const { body } = await world.graphql("query ($h: String!) { wallet(handle: $h) { handle } }", {
      h: handle,
    });
    expect(body.errors[0].message).toBe(message);
  });

  it("says that the service does not take an underscore", async () => {
    const { body } = await world.lookup("with_underscore");
    expect(body.message).toBe(
      'The handle must be 1-15 alphanumeric characters, without the @. Received "with_underscore". This service does not take handles with an underscore: use `walletById` in GraphQL.',
    );
  });

  it("answers INVALID_HANDLE for several handles", async () => {
    const { status, body } = await world.request("/wallet/lookup?handle=creator&handle=newcomer");
    expect([status, body]).toEqual([
      400,
      error("INVALID_HANDLE", expect.stringContaining("1-15 alphanumeric characters")),
    ]);
  });

  it.each(["nobodyatall", "suspended"])("answers SOCIAL_NOT_FOUND for %s", async (handle) => {
    const { status, body } = await world.lookup(handle);
    expect([status, body]).toEqual([404, error("SOCIAL_NOT_FOUND")]);
  });

  it.each([
    [
      "an id past 64 bits",
      problem(200, { data: [{ id: "18446744073709551616", username: "creator" }] }),
    ],
    [
      "an account and a not-found error for it",
      problem(200, {
        data: [{ id: "7", username: "creator" }],
        errors: [{ value: "creator", type: "x/resource-not-found" }],
      }),
    ],
    ["neither data nor errors", problem(200, {})],
    ["a redirect", problem(302, "", { location: "https://elsewhere.example/" })],
  ])("answers SOCIAL_API_UNAVAILABLE when the network answers %s", async (_name, then) => {
    world.sandbox.social.faults.add({ then });
    const { status, body } = await world.lookup("creator");
    expect([status, body]).toEqual([503, error("SOCIAL_API_UNAVAILABLE")]);
    world.sandbox.social.faults.clear();
    expect((await world.lookup("creator")).status).toBe(200);
  });

  it("has Retry-After in SOCIAL_API_UNAVAILABLE while the service calls the network no more", async () => {
    const outage = await startWorld({ RATE_LIMIT_MAX: "1000" });
    onTestFinished(outage.close);
    outage.sandbox.social.faults.add({ then: problem(401, {}) });
    const ask = async () => (await outage.lookup("creator")).headers.get("retry-after");
    expect(await ask()).toBeNull();
    await expect.poll(ask).toMatch(/^[1-9][0-9]?$/);
  });

  it("is SERVICE_BUSY with Retry-After: 30 while the queue is full, until a queued client disconnects", async () => {
    const busy = await startWorld({ SOCIAL_CONCURRENCY: 1, SOCIAL_QUEUE_MAX: "1" });
    onTestFinished(busy.close);
    const { social } = busy.sandbox;
    const release = hold(social);
    const first = busy.lookup("artist001");
    await expect.poll(() => social.calls.length).toBe(1);
    /** The number of accounts that wait for a call. */
    const waiting = async () =>
      Number(
        /^tributary_queue_length\{upstream="social"\} (\d+)$/m.exec(
          (await busy.request("/metrics")).body,
        )?.[1],
      );
    const leaving = new AbortController();
    const left = busy.request("/wallet/lookup?handle=artist002", { signal: leaving.signal });
    await expect.poll(waiting).toBe(1);
    const refused = await busy.lookup("artist003");
    expect([refused.status, refused.body]).toEqual([503, error("SERVICE_BUSY")]);
    expect(refused.headers.get("retry-after")).toBe("30");
    leaving.abort();
    await expect(left).rejects.toThrow();
    await expect.poll(waiting).toBe(0);
    const third = busy.lookup("artist003");
    await expect.poll(waiting).toBe(1);
    release();
    expect([(await first).status, (await third).status]).toEqual([200, 200]);
    expect(social.calls.flatMap(({ names }) => names)).toEqual(["artist001", "artist003"]);
  });

  it("allows underscores with HANDLE_ALLOW_UNDERSCORE, and the message says so", async () => {
    const wide = await startWorld({ HANDLE_ALLOW_UNDERSCORE: "true" });
    onTestFinished(wide.close);
    wide.sandbox.accounts.push({ ...wide.account("artist001"), handle: "with_underscore" });
    expect((await wide.lookup("with_underscore")).body.socialId).toBe(wide.account("artist001").id);
    expect((await wide.lookup("with-hyphen")).body).toEqual(
      error(
        "INVALID_HANDLE",
        'The handle must be 1-15 alphanumeric characters or underscores, without the @. Received "with-hyphen".',
      ),
    );
  });
});

describe("any other path or method", () => {
  it("is NOT_FOUND or METHOD_NOT_ALLOWED with Allow, in the error body", async () => {
    for (const path of [
      "/nothing",
      "/wallet",
      "/wallet/lookup/",
      "/collect/x",
      "/WALLET/LOOKUP",
      "//collect",
    ]) {
      // Browsers get the same.
      const { status, body } = await world.request(path, {
        headers: { accept: "text/html,*/*;q=0.8" },
      });
      expect([path, status, body]).toEqual([path, 404, error("NOT_FOUND")]);
    }
    const post = await world.request("/wallet/lookup?handle=creator", { method: "POST" });
    expect([post.status, post.body, post.headers.get("allow")]).toEqual([
      405,
      error("METHOD_NOT_ALLOWED"),
      "GET, HEAD, OPTIONS",
    ]);
    const get = await world.request("/collect");
    expect([get.status, get.body, get.headers.get("allow")]).toEqual([
      405,
      error("METHOD_NOT_ALLOWED"),
      "POST, OPTIONS",
    ]);
  });

  it("is decided by the path alone, whatever the valid Host header or the target's origin", async () => {
    const { port, hostname } = new URL(world.url);
    const ask = async (target: string, host: string) => {
      const socket = connect(Number(port), hostname);
      socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      let answer = "";
      for await (const chunk of socket) answer += String(chunk);
      return Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1]);
    };
    expect(await ask("/wallet/lookup?handle=creator", "elsewhere.example:99")).toBe(200);
    expect(await ask("/wallet/lookup?handle=creator", "[::1]:99")).toBe(200);
    expect(
      await ask("http://elsewhere.example/wallet/lookup?handle=creator", "elsewhere.example"),
    ).toBe(200);
    for (const host of ["a b", "localhost:99999", "localhost/wallet/lookup?handle=creator&x="])
      for (const target of ["/nothing", "/wallet/lookup?handle=creator"])
        expect(await ask(target, host)).toBe(400);
  });

  it("answers HEAD like GET, without the body", async () => {
    const { status, body } = await world.request("/wallet/lookup?handle=creator", {
      method: "HEAD",
    });
    expect([status, body]).toEqual([200, ""]);
  });

  it("answers a CORS preflight", async () => {
    const { status, headers } = await world.request("/collect", { method: "OPTIONS" });
    expect(status).toBe(204);
    expect(headers.get("access-control-allow-methods")).toContain("POST");
    expect(headers.get("access-control-allow-headers")).toBe("*, Authorization");
  });
});

it("BASE_PATH prefixes every route", async () => {
  const based = await startWorld({ BASE_PATH: "/api/v1" });
  onTestFinished(based.close);
  expect(based.url).toMatch(/\/api\/v1$/);
  expect((await based.lookup("creator")).status).toBe(200);
  expect((await based.graphql("{ __typename }")).body).toEqual({ data: { __typename: "Query" } });
  expect((await based.request("/livez")).status).toBe(200);
  expect((await fetch(new URL("/wallet/lookup?handle=creator", based.url))).status).toBe(404);
});

describe("health", () => {
  it("is live, and stays ready with a warning while the chain does not answer", async () => {
    expect((await world.request("/livez")).body).toEqual({ status: "ok" });
    expect((await world.request("/readyz")).status).toBe(200);
    // Probes share a check for five seconds.
    const skip = createSkipTime();
    skip(5_000);
    world.sandbox.rpc.faults.add({ then: "reset" });
    const warning = expect.stringContaining("no chain endpoint answers");
    // Without a proxy: only callers on this machine see the warnings.
    const readyz = async () => (await fetch(`${world.url}/readyz`)).json();
    await expect.poll(readyz).toEqual({ status: "ok", warnings: [warning] });
    expect((await world.request("/readyz")).status).toBe(200);
    expect((await world.request("/livez")).status).toBe(200);
    world.sandbox.rpc.faults.clear();
    skip(5_000);
    await expect.poll(async () => (await world.request("/readyz")).body).toEqual({ status: "ok" });
  });
});

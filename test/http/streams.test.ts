import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
} from "vitest";
import { openEventStream, type EventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { newMint } from "../support/new-mint.ts";
import { startWorld, type World } from "../support/world.ts";

const WATCH = `subscription Watch($id: String!) {
  walletById(socialId: $id) { id balance { vault total } }
}`;
const SOL = 10n ** 9n;

let world: World;
let streams: EventStream[];
beforeAll(async () => {
  world = await startWorld({ STREAMS_MAX: "24" });
});
beforeEach(() => {
  streams = [];
});
afterEach(async () => {
  for (const { close } of streams) close();
  await eventually(async () => {
    expect(await metric("tributary_streams_open")).toBe(0);
  });
});
afterAll(() => world.close());

async function metric(name: string): Promise<number> {
  const { body } = await world.request("/metrics");
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(body)?.[1]);
}

let addresses = 0;
async function open(
  handle: string,
  { address = `10.0.${++addresses}.1`, query = WATCH, headers = {} } = {},
): Promise<EventStream> {
  const { id } = world.account(handle);
  const stream = await openEventStream(
    world.url,
    { query, variables: { id } },
    { address, headers },
  );
  streams.push(stream);
  return stream;
}
const shown = (stream: EventStream) =>
  stream.events().map(({ data }) => data.walletById?.balance?.vault);
const shows = (stream: EventStream, ...vaults: string[]) =>
  eventually(() => {
    expect(shown(stream)).toEqual(vaults);
  });
function addFees(handle: string, lamports: bigint): void {
  const { chain } = world.sandbox;
  const { creatorVault } = world.account(handle);
  chain.setBalance(creatorVault, chain.balance(creatorVault) + lamports);
}

describe("a stream", () => {
  it("sends the wallet at once, and again when an amount has changed", async () => {
    const stream = await open("creator");
    expect([stream.status, stream.headers["content-type"]]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
    ]);
    expect(stream.headers).toMatchObject({
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    });
    await shows(stream, "3.1000");
    expect(stream.events()[0]).toEqual({
      data: {
        walletById: {
          id: world.account("creator").id,
          balance: { vault: "3.1000", total: "8.3000" },
        },
      },
    });
    addFees("creator", SOL);
    await shows(stream, "3.1000", "4.1000");
  });

  it("counts the fees that wait on the coins that it names", async () => {
    const { coins } = world.sandbox;
    const { address } = world.account("newcomer");
    const mint = newMint();
    coins.launch({ mint, creator: address });
    const query = `subscription Watch($id: String!) {
      walletById(socialId: $id) { balance(mints: ["${mint}"]) { vault } ...Coins }
    }
    fragment Coins on Wallet {
      coins(mints: ["${mint}"]) { waiting }
      none: balance { vault }
    }`;
    const stream = await open("newcomer", { query });
    await shows(stream, "0.0000");
    coins.addFees(mint, 2n * SOL);
    await shows(stream, "0.0000", "2.0000");
    expect(stream.events()[1]).toMatchObject({
      data: { walletById: { coins: [{ waiting: "2.0000" }] } },
    });
  });

  it("of more than 19 coins is INVALID_MINT, and has no further event", async () => {
    const fields = Array.from({ length: 2 }, (_, i) => {
      const mints = Array.from({ length: 10 }, newMint);
      return `b${i}: balance(mints: ${JSON.stringify(mints)}) { vault }`;
    });
    const query = `subscription Watch($id: String!) { walletById(socialId: $id) { ${fields.join(" ")} } }`;
    const stream = await open("newcomer", { query });
    await eventually(() => {
      expect(stream.text()).toContain("event: complete");
    });
    expect(stream.events()[0]).toMatchObject({
      errors: [{ extensions: { code: "INVALID_MINT" } }],
    });
  });

  it("shows a collect of this process soon", async () => {
    const stream = await open("artist001");
    await eventually(() => {
      expect(shown(stream)).toHaveLength(1);
    });
    const { body } = await world.collect(world.account("artist001").id);
    expect(body.success).toBe(true);
    await eventually(() => {
      expect(shown(stream).at(-1)).toBe("0.0000");
    });
  });

  it("opens over GET too, and over POST whatever else the caller accepts", async () => {
    const { id } = world.account("creator");
    const URQL =
      "application/graphql-response+json, application/json, text/event-stream, multipart/mixed";
    for (const accept of [URQL, "*/*", "text/event-stream"]) {
      const stream = await open("creator", { headers: { accept } });
      await eventually(() => {
        expect(stream.events()).toHaveLength(1);
      });
      const search = new URLSearchParams({ query: WATCH, variables: JSON.stringify({ id }) });
      const stop = new AbortController();
      const headers = { accept, "x-forwarded-for": "198.51.100.9" };
      const response = await fetch(`${world.url}/graphql?${search}`, {
        headers,
        signal: stop.signal,
      });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      while (!text.includes("event: next")) text += String((await reader.read()).value);
      expect(text).toMatch(/^:\n\n/);
      stop.abort();
    }
    const head = await world.request(
      `/graphql?${new URLSearchParams({ query: WATCH, variables: JSON.stringify({ id }) })}`,
      {
        method: "HEAD",
      },
    );
    expect(head.status).toBe(200);
  });

  it("costs one request to open, and nothing later", async () => {
    const address = "192.0.2.200";
    const stream = await open("dusty", { address });
    expect(stream.headers.ratelimit).toContain("r=19");
    await eventually(() => {
      expect(stream.events()).toHaveLength(1);
    });
    addFees("dusty", SOL);
    await eventually(() => {
      expect(stream.events()).toHaveLength(2);
    });
    expect(
      (await world.lookup("dusty", { "x-forwarded-for": address })).headers.get("ratelimit"),
    ).toContain("r=18");
  });

  it("reads an account's handle and profile once, not for each event", async () => {
    const query = `subscription Watch($id: String!) {
      walletById(socialId: $id) { handle profile { name } balance { vault } }
    }`;
    world.sandbox.social.calls.length = 0;
    const stream = await open("graduate", { query });
    await shows(stream, "1.5000");
    addFees("graduate", SOL);
    await shows(stream, "1.5000", "2.5000");
    for (const { data } of stream.events())
      expect(data.walletById).toMatchObject({ handle: "graduate", profile: { name: "Graduate" } });
    expect(world.sandbox.social.calls).toHaveLength(1);
  });

  it("is refused while its address has too many, with the time until one ends", async () => {
    const shared = world;
    onTestFinished(async () => {
      await world.close();
      world = shared;
      streams = [];
    });
    world = await startWorld({ RATE_LIMIT_MAX: "1000" });
    const address = "192.0.2.201";
    const first = await open("creator", { address });
    for (let i = 1; i < 20; i++) expect((await open("dusty", { address })).status).toBe(200);
    const refused = await open("creator", { address });
    expect([refused.status, refused.headers["content-type"]]).toEqual([
      429,
      "application/json; charset=utf-8",
    ]);
    const seconds = Number(refused.headers["retry-after"]);
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(600);
    await eventually(() => {
      expect(JSON.parse(refused.text()).errors).toMatchObject([
        {
          message: expect.stringContaining("maximum is 20 from one address"),
          extensions: { code: "RATE_LIMITED" },
        },
      ]);
    });
    first.close();
    await eventually(async () => {
      expect((await open("creator", { address })).status).toBe(200);
    });
  });

  it("is refused while the service has too many", async () => {
    for (let i = 0; i < 24; i++) expect((await open("creator")).status).toBe(200);
    // The callers of JSON get the same.
    for (const headers of [{}, { accept: "application/json, text/event-stream" }]) {
      const refused = await open("creator", { headers });
      expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "30"]);
      await eventually(() => {
        expect(JSON.parse(refused.text()).errors).toMatchObject([
          { extensions: { code: "SERVICE_BUSY" } },
        ]);
      });
    }
    expect(await metric("tributary_streams_open")).toBe(24);
  });

  it.each([
    ["an invalid id", 'subscription { walletById(socialId: "x") { id } }', "INVALID_SOCIAL_ID"],
    ["an invalid handle", 'subscription { wallet(handle: "-") { id } }', "INVALID_HANDLE"],
    [
      "an unknown handle",
      'subscription { wallet(handle: "nobodyatall") { id } }',
      "SOCIAL_NOT_FOUND",
    ],
  ])("of %s has its error as the only event, and ends for good", async (_name, query, code) => {
    const stream = await open("creator", { query });
    await eventually(() => {
      expect(stream.end()).toBe("complete");
    });
    expect(stream.status).toBe(200);
    expect(stream.text()).toMatch(/event: complete\ndata:\n\n$/);
    expect(stream.events()).toMatchObject([{ errors: [{ extensions: { code } }] }]);
  });

  it.each([
    ["a syntax error", "subscription {", 400],
    ["an unknown field", "subscription { nothing }", 400],
    [
      "two root fields",
      'subscription { a: walletById(socialId: "1") { id } b: walletById(socialId: "1") { id } }',
      400,
    ],
    ["an invalid variable", 'subscription A($a: Int!) { walletById(socialId: "1") { id } }', 400],
    ["a history", 'subscription { walletById(socialId: "1") { history { nodes { kind } } } }', 400],
  ])("with %s is refused", async (_name, query, status) => {
    const stream = await open("creator", { query });
    expect([stream.status, stream.headers["content-type"]]).toEqual([
      status,
      "application/json; charset=utf-8",
    ]);
    await eventually(() => {
      expect(JSON.parse(stream.text()).errors).not.toEqual([]);
    });
  });

  it("is refused with 503 while the network is down, so that clients try again", async () => {
    world.sandbox.social.faults.add({ then: "reset" });
    const stream = await open("creator", {
      query: 'subscription { wallet(handle: "artist050") { id } }',
    });
    world.sandbox.social.faults.clear();
    expect(stream.status).toBe(503);
    await eventually(() => {
      expect(JSON.parse(stream.text()).errors).toMatchObject([
        { extensions: { code: "SOCIAL_API_UNAVAILABLE" } },
      ]);
    });
  });

  it("is refused for callers who accept only JSON, and other operations for those who accept only events", async () => {
    const json = await open("creator", { headers: { accept: "application/json" } });
    expect(json.status).toBe(406);
    const { id, creatorVault } = world.account("artist010");
    const before = world.sandbox.chain.balance(creatorVault);
    for (const query of ["{ __typename }", `mutation { collect(socialId: "${id}") { success } }`])
      expect((await open("creator", { query })).status).toBe(406);
    expect(world.sandbox.chain.balance(creatorVault)).toBe(before);
  });
});

it("a service that has streams switched off says so, and not when to try again", async () => {
  const closed = await startWorld({ STREAMS_MAX: "0" });
  onTestFinished(() => closed.close());
  for (const accept of ["text/event-stream", "application/json, text/event-stream"]) {
    const variables = { id: closed.account("creator").id };
    const refused = await openEventStream(
      closed.url,
      { query: WATCH, variables },
      { headers: { accept } },
    );
    expect([refused.status, refused.headers["retry-after"]]).toEqual([400, undefined]);
    await eventually(() => {
      expect(JSON.parse(refused.text()).errors).toEqual([
        {
          message: "This service has streams switched off.",
          path: ["walletById"],
          locations: expect.any(Array),
          extensions: { code: "BAD_REQUEST", moved: "no" },
        },
      ]);
    });
  }
});

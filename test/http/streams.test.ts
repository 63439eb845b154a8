import { afterEach, describe, expect } from "vitest";
import { openEventStream, type EventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { newMint } from "../support/new-mint.ts";
import { chain, withWorld, world } from "../support/fixtures.ts";

const WATCH = `subscription Watch($id: String!) {
  walletById(socialId: $id) { id balance { vault total } }
}`;
const SOL = 10n ** 9n;

const it = withWorld({ RATE_LIMIT_MAX: "1000" });
let streams: EventStream[] = [];
afterEach(async () => {
  for (const { close } of streams) close();
  streams = [];
  await eventually(async () => {
    expect((await world.request("/metrics")).body).toContain("tributary_streams_open 0\n");
  });
});

let addresses = 0;
async function open(
  handle: string,
  {
    address = `10.0.${++addresses}.1`,
    query = WATCH,
    variables = { id: world.account(handle).id },
    headers = {},
  }: {
    address?: string;
    query?: string;
    variables?: object;
    headers?: Record<string, string>;
  } = {},
): Promise<EventStream> {
  const body = { query, variables: { ...variables } };
  const stream = await openEventStream(world.url, body, { address, headers });
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

  it("shows a collect of this process soon", async () => {
    const stream = await open("artist001");
    await expect.poll(() => shown(stream)).toHaveLength(1);
    const { body } = await world.collect(world.account("artist001").id);
    expect(body.success).toBe(true);
    await expect.poll(() => shown(stream).at(-1)).toBe("0.0000");
  });

  it("opens over GET too, and over POST whatever else the caller accepts", async () => {
    const { id } = world.account("creator");
    for (const accept of ["application/json, text/event-stream, multipart/mixed", "*/*"]) {
      const stream = await open("creator", { headers: { accept } });
      await expect.poll(() => stream.events()).toHaveLength(1);
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
  });

  it.each([
    ["an invalid id", 'subscription { walletById(socialId: "x") { id } }', "INVALID_SOCIAL_ID"],
    [
      "an unknown handle",
      'subscription { wallet(handle: "nobodyatall") { id } }',
      "SOCIAL_NOT_FOUND",
    ],
  ])("of %s has its error as the only event, and ends for good", async (_name, query, code) => {
    const stream = await open("creator", { query });
    await expect.poll(() => stream.end()).toBe("complete");
    expect(stream.status).toBe(200);
    expect(stream.text()).toMatch(/event: complete\ndata:\n\n$/);
    expect(stream.events()).toMatchObject([{ errors: [{ extensions: { code } }] }]);
  });

  it.each([
    ["an unknown field", "subscription { nothing }"],
    [
      "two root fields",
      'subscription { a: walletById(socialId: "1") { id } b: walletById(socialId: "1") { id } }',
    ],
    ["a history", 'subscription { walletById(socialId: "1") { history { nodes { kind } } } }'],
  ])("with %s is refused", async (_name, query) => {
    const stream = await open("creator", { query });
    expect([stream.status, stream.headers["content-type"]]).toEqual([
      400,
      "application/json; charset=utf-8",
    ]);
    await expect.poll(() => JSON.parse(stream.text()).errors).not.toEqual([]);
  });

  it("is refused with 503 while the network is down, so that clients try again", async () => {
    world.sandbox.social.faults.add({ then: "reset" });
    const stream = await open("creator", {
      query: 'subscription { wallet(handle: "artist050") { id } }',
    });
    world.sandbox.social.faults.clear();
    expect(stream.status).toBe(503);
    await expect
      .poll(() => JSON.parse(stream.text()).errors)
      .toMatchObject([{ extensions: { code: "SOCIAL_API_UNAVAILABLE" } }]);
  });

  it("is refused for callers who accept only JSON, and other operations for those who accept only events", async () => {
    const json = await open("creator", { headers: { accept: "application/json" } });
    expect(json.status).toBe(406);
    const { id, creatorVault } = world.account("artist010");
    const before = chain.balance(creatorVault);
    for (const query of ["{ __typename }", `mutation { collect(socialId: "${id}") { success } }`])
      expect((await open("creator", { query })).status).toBe(406);
    expect(chain.balance(creatorVault)).toBe(before);
  });
});

describe("a stream of many wallets", () => {
  const MANY = `subscription Watch($ids: [String!]!) {
    walletsById(socialIds: $ids) { id balance { vaultLamports totalLamports } }
  }`;
  const openMany = (ids: readonly string[]) => open("", { query: MANY, variables: { ids } });
  const wallets = (stream: EventStream): any[] =>
    stream.events().map(({ data }) => data.walletsById);

  it("shows only the wallet that has changed, and a repeated id once", async () => {
    const [one, other] = [world.account("artist010"), world.account("artist011")];
    const stream = await openMany([one.id, other.id, one.id]);
    await expect.poll(() => wallets(stream)).toHaveLength(2);
    chain.setBalance(other.creatorVault, 7n * SOL);
    await expect.poll(() => wallets(stream)).toHaveLength(3);
    expect(wallets(stream)[2].id).toBe(other.id);
  });

  it.each([
    ["no id", [], "BAD_REQUEST", {}],
    ["an invalid id", ["1", "x"], "INVALID_SOCIAL_ID", { socialId: "x" }],
  ])("of %s is refused", async (_name, ids, code, extensions) => {
    const stream = await openMany(ids);
    await expect.poll(() => stream.end()).toBeDefined();
    const [event] = stream.events();
    const { errors } = event ?? JSON.parse(stream.text());
    expect(errors[0].extensions).toMatchObject({ code, ...extensions });
  });
});

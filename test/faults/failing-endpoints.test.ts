import { describe, expect, it } from "vitest";
import { refuse, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { rpcError } from "../support/rpc-answers.ts";
import { isMethod, isOwnCall } from "../support/sandbox.ts";
import { createSkipTime } from "../support/skip-time.ts";
import type { World } from "../support/world.ts";

/** More than a provider asks for: the service waits 30 s at most. */
const ASKS_FOR = 3_600;
const LIMITED = { status: 429, headers: { "retry-after": String(ASKS_FOR) }, body: "" };
const isHistory = isMethod("getSignaturesForAddress", "getTransaction");

let world: World;
let first: LyingEndpoint;
let second: LyingEndpoint;
async function start(count: 1 | 2, env: Record<string, string> = {}): Promise<void> {
  const started = await startWithLyingEndpoints(count, env);
  world = started.world;
  [first, second] = started.endpoints;
  await world.gateway.start();
}
const vaultOf = async (handle = "creator"): Promise<unknown> =>
  (await world.lookup(handle)).body.balance?.vault;
const collect = async () => (await world.collect(world.account("creator").id)).body;
const readHistory = async (handle = "creator") => {
  const query = `{ wallet(handle: "${handle}") { history(first: 5) { nodes { kind } } } }`;
  return (await world.graphql(query)).body;
};
/** Which endpoint answers a request: the methods that reach each. */
const askedBy = async (request: () => Promise<unknown>) => {
  for (const endpoint of [first, second]) endpoint.calls.length = 0;
  await request();
  return [first, second].map(({ calls }) => calls.some(isOwnCall));
};

describe("429 with Retry-After", () => {
  it("from the only endpoint: no read in that time, up to 30 s, and the next one succeeds", async () => {
    await start(1, { RPC_TIMEOUT_MS: "2000" });
    const skip = createSkipTime();
    const lift = first.faults.add({ then: LIMITED });
    expect(await vaultOf()).toBeUndefined();
    lift();
    first.calls.length = 0;
    for (let i = 0; i < 5; i++) expect(await vaultOf()).toBeUndefined();
    expect(first.calls).toEqual([]);
    skip(30_000);
    expect(await vaultOf()).toBe("3.1000");
  });

  it("from the preferred of two: the other one answers, and the first gets no read in that time", async () => {
    await start(2);
    const skip = createSkipTime();
    first.faults.add({ times: 1, then: LIMITED });
    expect(await vaultOf()).toBe("3.1000");
    expect(await askedBy(() => vaultOf())).toEqual([false, true]);
    skip(30_000);
    await expect.poll(() => askedBy(() => vaultOf())).toEqual([true, false]);
  });

  it("does not count for sends and questions about outcomes", async () => {
    await start(1);
    first.faults.add({
      times: 2,
      when: isMethod("sendTransaction", "getTransaction"),
      then: LIMITED,
    });
    expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
  });

  it("to histories stops no reads", async () => {
    await start(1, { RPC_TIMEOUT_MS: "2000" });
    first.faults.add({ times: 1, when: isHistory, then: LIMITED });
    expect(await readHistory()).toHaveProperty("errors");
    expect(await vaultOf()).toBe("3.1000");
  });
});

describe("failures back off by kind of call", () => {
  it.each([
    ["the error -32011", () => refuse(-32011)],
    ["the error -32015", () => refuse(-32015)],
    ["the error -32603", () => refuse(-32603)],
  ])(
    "a history page that the preferred endpoint answers with %s moves no lookups",
    async (_, fail) => {
      await start(2);
      first.lie({ getSignaturesForAddress: fail, getTransaction: fail });
      expect(await collect()).toMatchObject({ success: true });
      expect(await readHistory()).toEqual({
        data: { wallet: { history: { nodes: [{ kind: "COLLECTED" }] } } },
      });
      for (let i = 0; i < 5; i++) expect(await askedBy(() => vaultOf())).toEqual([true, false]);
    },
  );

  it("a failing preferred endpoint is asked again after 1 s, 2 s, 4 s and so on, 30 s at most", async () => {
    await start(2);
    const skip = createSkipTime();
    first.faults.add({ then: "reset" });
    await vaultOf();
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      first.calls.length = 0;
      skip(seconds * 1_000 - 500);
      await vaultOf();
      expect(first.calls).toEqual([]);
      skip(500);
      await vaultOf();
      await expect.poll(() => first.calls.length).toBe(1);
      // The failure is known before the clock goes on: all servers run in this event loop.
      for (let round = 0; round < 5; round++) await world.request("/livez");
    }
  });

  it("a failing one serves again as soon as it answers", async () => {
    await start(2);
    const skip = createSkipTime();
    const lift = first.faults.add({ then: "reset" });
    await vaultOf();
    expect(await askedBy(() => vaultOf())).toEqual([false, true]);
    lift();
    skip(1_000);
    await expect.poll(() => askedBy(() => vaultOf())).toEqual([true, false]);
  });
});

describe("a slow preferred endpoint", () => {
  it("does not keep a lookup waiting: the second one is asked too, and next time first", async () => {
    // It hangs until the call's deadline, which no test reaches.
    await start(2, { RPC_TIMEOUT_MS: "5000" });
    first.faults.add({ then: "hang" });
    expect(await askedBy(() => vaultOf())).toEqual([true, true]);
    expect(await vaultOf()).toBe("3.1000");
    expect(await askedBy(() => vaultOf())).toEqual([false, true]);
  });
});

/** Asks without a proxy: only callers on this machine see the warnings. */
async function readyz() {
  const response = await fetch(`${world.url}/readyz`);
  return { status: response.status, body: (await response.json()) as { warnings?: string[] } };
}

it.each([-32700, -32002, -32015])(
  "the error %i of the preferred endpoint to any method fails no request, and /readyz warns",
  async (code) => {
    await start(2);
    first.faults.add({ then: rpcError({ code }) });
    expect(await vaultOf()).toBe("3.1000");
    expect(await collect()).toMatchObject({ collected: "3.1000" });
    const { status, body } = await readyz();
    const { host } = new URL(first.url);
    expect(status).toBe(200);
    expect(body.warnings).toContainEqual(
      expect.stringMatching(new RegExp(`^${host}: a chain endpoint (fails|refuses)`)),
    );
  },
);

it("/readyz shows no warning while both endpoints work", async () => {
  await start(2);
  expect(await collect()).toMatchObject({ collected: "3.1000" });
  expect((await readyz()).body.warnings).toBeUndefined();
});

import { afterEach, describe, expect, it } from "vitest";
import { MAX_MINTS_PER_WALLET } from "../../src/contract/mint.ts";
import {
  refuse,
  startLyingEndpoint,
  type LyingEndpoint,
} from "../support/doubles/lying-endpoint.ts";
import { newMint } from "../support/new-mint.ts";
import { hold, isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let provider: LyingEndpoint;
afterEach(async () => {
  await world.close();
  await provider.close();
});

/** A gateway whose only provider accepts this many accounts per call. */
async function startWithLimit(limit: number, refusal: () => never): Promise<void> {
  world = await startWorld(async (sandbox) => {
    provider = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: provider.url };
  });
  provider.lie({
    getMultipleAccounts: (tellTruth, [keys]) => (keys.length > limit ? refusal() : tellTruth()),
  });
}
const reads = () =>
  provider.calls.filter(isMethod("getMultipleAccounts")).map(({ params }) => params[0] as string[]);

/** The total of each of 99 wallets, which need three calls to a node without a limit. */
async function readWallets(): Promise<(string | undefined)[]> {
  const accounts = world.sandbox.accounts.filter(({ suspended }) => !suspended).slice(0, 99);
  const fields = accounts.map(
    ({ handle }, i) => `w${i}: wallet(handle: "${handle}") { balance { total } }`,
  );
  const { body } = await world.graphql(`{ ${fields.join(" ")} }`);
  expect(body.errors).toBeUndefined();
  return accounts.map((_, i) => body.data[`w${i}`].balance.total);
}

it.each([
  [5, -32602],
  [10, -32600],
  [75, -32003],
])(
  "a provider that accepts only %i accounts per call, and refuses others with %i, serves 99 wallets",
  async (limit, code) => {
    await startWithLimit(limit, () => refuse(code));
    expect(new Set(await readWallets()).size).toBeGreaterThan(1);
    const { creatorVault, ammVault, address } = world.account("creator");
    const together = reads().filter((keys) => keys.includes(address));
    for (const keys of together)
      expect(keys).toEqual(expect.arrayContaining([creatorVault, ammVault, address]));

    // The limit is known now.
    provider.calls.length = 0;
    await readWallets();
    expect(reads().filter((keys) => keys.length > limit)).toEqual([]);
  },
);

it("a provider that refuses a large body with status 413 is asked for fewer accounts", async () => {
  await startWithLimit(100, () => refuse(0));
  provider.faults.add({
    when: ({ method, params }) =>
      method === "getMultipleAccounts" && (params[0] as string[]).length > 50,
    then: { status: 413, body: "" },
  });
  expect(await readWallets()).toHaveLength(99);
});

it("a wallet and the same one with a coin, of which neither fits into one call, are both read", async () => {
  await startWithLimit(2, () => refuse(-32602));
  const query = `query ($mints: [String!]) { wallet(handle: "creator") { balance(mints: $mints) { vault } } }`;
  for (let i = 0; i < 2; i++) {
    const answers = await Promise.all(
      [[], [newMint()]].map((mints) => world.graphql(query, { mints })),
    );
    for (const { body } of answers)
      expect(body.data).toEqual({ wallet: { balance: { vault: "3.1000" } } });
  }
});

it("a wallet that does not fit into one call is read again until all its accounts are from one slot", async () => {
  await startWithLimit(2, () => refuse(-32602));
  let calls = 0;
  provider.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      if (keys.length > 2) refuse(-32602);
      const { context, value } = tellTruth();
      // The fees of the first read are collected between its calls.
      calls++;
      return calls === 1
        ? { context: { slot: context.slot - 1 }, value: [null, null] }
        : { context, value };
    },
  });
  expect((await world.lookup("creator")).body.balance).toMatchObject({
    vault: "3.1000",
    total: "8.3000",
  });
});

it("a wallet whose accounts are never from one slot is an error, not a wrong balance", async () => {
  await startWithLimit(2, () => refuse(-32602));
  let slot = 0;
  provider.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      if (keys.length > 2) refuse(-32602);
      return { context: { slot: ++slot }, value: tellTruth().value };
    },
  });
  expect((await world.lookup("creator")).body.error).toBe("LOOKUP_FAILED");
});

describe("behind a provider of two nodes that are one slot apart", () => {
  /**
   * Answers calls in turns for a slot and for the one before, and at most `limit` accounts per
   * call.
   */
  async function startApart(limit = 100): Promise<void> {
    await startWithLimit(limit, () => refuse(-32602));
    let calls = 0;
    provider.lie({
      getMultipleAccounts(tellTruth, [keys]) {
        if (keys.length > limit) refuse(-32602);
        const { context, value } = tellTruth();
        return { context: { slot: context.slot - (calls++ % 2) }, value };
      },
    });
  }
  const newMints = (count: number) => Array.from({ length: count }, newMint);

  it("mints that others name do not fail a collect that they join", async () => {
    await startApart();
    const { id } = world.account("creator");
    const release = hold(provider, isMethod("simulateTransaction"));
    const first = world.collect(id);
    await expect.poll(() => provider.calls.filter(isMethod("simulateTransaction")).length).toBe(1);
    const others = Array.from({ length: 5 }, (_, i) =>
      world.collect(id, { "x-forwarded-for": `192.0.${i}.1` }, newMints(10)),
    );
    for (let round = 0; round < 3; round++) await world.request("/livez");
    release();
    expect((await first).body).toMatchObject({ success: true, collected: "3.1000" });
    for (const { body } of await Promise.all(others)) expect(body.error).not.toBe("COLLECT_FAILED");
    expect(Math.max(...reads().map((keys) => keys.length))).toBeLessThanOrEqual(100);
  });

  it("a wallet with as many coins as one may have is read, and so are those that are read with it", async () => {
    await startApart();
    const mints = newMints(MAX_MINTS_PER_WALLET);
    const fields = Array.from({ length: Math.ceil(mints.length / 10) }, (_, i) => {
      const some = JSON.stringify(mints.slice(i * 10, i * 10 + 10));
      return `b${i}: balance(mints: ${some}) { vault }`;
    });
    const { body } = await world.graphql(
      `{ large: wallet(handle: "creator") { ${fields.join(" ")} } small: wallet(handle: "artist001") { balance { vault } } }`,
    );
    expect(body.errors).toBeUndefined();
    expect(body.data.large.b0).toEqual({ vault: "3.1000" });
  });

  it("a wallet that does not fit into one call fails alone", async () => {
    await startApart(10);
    const { body } = await world.graphql(
      `query ($mints: [String!]) {
        large: wallet(handle: "creator") { balance(mints: $mints) { vault } }
        small: wallet(handle: "artist001") { balance { vault } }
      }`,
      { mints: newMints(3) },
    );
    expect(body.data).toMatchObject({
      large: { balance: null },
      small: { balance: { vault: expect.any(String) } },
    });
    expect(body.errors).toMatchObject([{ path: ["large", "balance"] }]);
  });
});

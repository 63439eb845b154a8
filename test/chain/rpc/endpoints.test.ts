import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hold, isMethod } from "../../support/sandbox.ts";
import { startPlainNodes, type PlainNode } from "../../support/doubles/plain-nodes.ts";

const WARN = 40;
const ERROR = 50;
const FIRST = "0 getMultipleAccounts";
const SECOND = "1 getMultipleAccounts";

let started: Awaited<ReturnType<typeof startPlainNodes>>;
let client: ReturnType<typeof started.createClient>;
let first: PlainNode;
let second: PlainNode;
beforeEach(async () => {
  started = await startPlainNodes(2);
  [first, second] = started.nodes as [PlainNode, PlainNode];
  client = started.createClient();
});
afterEach(() => started.close());

/** Lets the client read the cluster and the state of all endpoints. */
async function readClusters(): Promise<void> {
  await client.readClusters();
  await started.takeCalls();
}
/** Reads an account, and returns the calls, also those in the background. */
async function read(): Promise<string[]> {
  await client.getAccounts(["x"]);
  return started.takeCalls();
}
/** Reads once a second for this long, and returns the calls. */
async function readFor(seconds: number): Promise<string[]> {
  const calls: string[] = [];
  for (let i = 0; i < seconds; i++) {
    started.later(1_000);
    calls.push(...(await read()));
  }
  return calls;
}
const ofAll = (change: (state: PlainNode["state"]) => void) => {
  for (const { state } of started.nodes) change(state);
};
const lines = (level: number) => started.lines.filter((line) => line.includes(`"level":${level},`));

describe("an endpoint's cluster", () => {
  it("is read before its first use, and not by later calls", async () => {
    expect(await read()).toEqual([
      ...["0 getGenesisHash", FIRST],
      ...["1 getGenesisHash", "1 state"],
    ]);
    expect(await readFor(60)).not.toContain("0 getGenesisHash");
  });

  it.each([
    { slots: 1_001, afterMs: 0, isJump: true },
    { slots: 1_000, afterMs: 0, isJump: false },
    { slots: -1_001, afterMs: 0, isJump: true },
    { slots: -1_000, afterMs: 0, isJump: false },
    // Ten slots a second.
    { slots: 1_601, afterMs: 60_000, isJump: true },
    { slots: 1_600, afterMs: 60_000, isJump: false },
  ])("is read again when its slot jumps: $slots in $afterMs ms", async (row) => {
    await readClusters();
    await read();
    started.later(row.afterMs);
    ofAll((state) => (state.slot += row.slots));
    expect((await read()).includes("0 getGenesisHash")).toBe(row.isJump);
  });

  it("is read before an answer counts whose slot jumps", async () => {
    await readClusters();
    first.state.slot += 5_000;
    first.state.genesisHash = "another";
    expect(await read()).toEqual([FIRST, "0 getGenesisHash", SECOND]);
    expect(await read()).toEqual([SECOND]);
    expect(lines(ERROR)).toEqual([expect.stringContaining(new URL(first.url).host)]);
  });

  it("of the preferred endpoint is right, whoever answers first", async () => {
    first.faults.add({ then: "reset" });
    second.state.genesisHash = "another";
    await readClusters();
    expect([await read(), client.genesisHash()]).toEqual([[SECOND], "another"]);
    first.faults.clear();
    await readFor(3);
    expect([await read(), client.genesisHash()]).toEqual([[FIRST], "genesis"]);
    expect(lines(ERROR)).toEqual([expect.stringContaining(new URL(second.url).host)]);
    expect(client.problems()).toContainEqual(expect.stringContaining("another cluster"));

    first.faults.add({ then: "reset" });
    await expect(read()).rejects.toThrow("unreachable");
    expect(await started.takeCalls()).not.toContain(SECOND);
  });

  it("is asked for again each minute while it is another one", async () => {
    second.state.genesisHash = "another";
    await readClusters();
    expect(new Set(await readFor(60))).toEqual(new Set([FIRST]));
    expect((await readFor(60)).filter((call) => call !== FIRST)).toEqual(["1 getGenesisHash"]);
    second.state.genesisHash = "genesis";
    await readFor(61);
    first.faults.add({ then: "reset" });
    expect(await read()).toContain(SECOND);
  });

  it("of an only endpoint is never judged", async () => {
    client = started.createClient({ urls: [first.url] });
    await read();
    first.state.slot += 5_000;
    first.state.genesisHash = "another";
    expect(await read()).toEqual([FIRST]);
    await readClusters();
    expect(await readFor(120)).toEqual(Array(120).fill(FIRST));
    expect([started.lines, client.problems()]).toEqual([[], []]);
  });
});

describe("an endpoint that is behind", () => {
  it.each([
    ["its clock is old", { behindMs: 16_000 }],
    ["its slot is far below", { slot: 10_000 - 76 }],
  ])("is passed over while a fresher one answers: %s", async (_, state) => {
    const fresh = { ...first.state };
    await readClusters();
    Object.assign(first.state, state);
    expect(await read()).toEqual([FIRST, SECOND]);
    expect(await read()).toEqual([SECOND]);
    // It is looked at in the background, and logged once.
    expect(new Set(await readFor(30))).toEqual(new Set([SECOND, "0 state"]));
    expect(lines(WARN)).toEqual([expect.stringContaining("behind")]);
    expect(client.problems()).toEqual([expect.stringContaining(new URL(first.url).host)]);

    Object.assign(first.state, fresh);
    await readFor(3);
    expect(await read()).toEqual([FIRST]);
    started.later(60_001);
    expect(client.problems()).toEqual([]);
  });

  it.each([
    ["its clock is old", { behindMs: 15_000 }],
    ["its slot is below", { slot: 10_000 - 75 }],
  ])("is not passed over for so little: %s", async (_, state) => {
    Object.assign(first.state, state);
    await readClusters();
    await read();
    expect(await read()).toEqual([FIRST]);
  });

  it.each([60_000, -60_000])(
    "is none while this machine's clock is wrong: reads make one call, %i ms",
    async (behindMs) => {
      ofAll((state) => (state.behindMs = behindMs));
      await readClusters();
      const calls = await readFor(30);
      started.later(300_000);
      calls.push(...(await read()));
      expect(calls.filter((call) => call !== "1 state")).toEqual(Array(31).fill(FIRST));
      expect([started.lines, client.problems()]).toEqual([[], []]);
    },
  );

  it("is told from this machine's clock, however long no call was made", async () => {
    await readClusters();
    started.later(300_000);
    first.state.behindMs = 290_000;
    expect(await read()).toEqual([FIRST, SECOND]);
    expect(await read()).toEqual([SECOND]);
  });
});

describe("the latest blockhash", () => {
  const VALID_BLOCKS = 150;
  const HASH = "1".repeat(32);
  const OTHER_HASH = `${"1".repeat(31)}2`;
  beforeEach(readClusters);
  const readBlockhash = async () => {
    const { blockhash } = await client.getLatestBlockhash();
    return { blockhash, calls: await started.takeCalls() };
  };
  const callsOfFirst = async () =>
    (await readBlockhash()).calls.filter((call) => call.startsWith("0 "));

  it("is compared with the endpoint's height, which is read only when needed", async () => {
    expect(await callsOfFirst()).toEqual(["0 getLatestBlockhash", "0 getEpochInfo"]);
    expect(await callsOfFirst()).toEqual(["0 getLatestBlockhash"]);
    first.state.blockHeight += VALID_BLOCKS;
    expect(await callsOfFirst()).toEqual(["0 getLatestBlockhash"]);
    first.state.blockHeight += 1;
    expect(await callsOfFirst()).toEqual(["0 getLatestBlockhash", "0 getEpochInfo"]);
  });

  it.each([
    [2 * VALID_BLOCKS, HASH],
    [2 * VALID_BLOCKS + 1, OTHER_HASH],
  ])("is valid for at most 300 blocks: %i", async (blocks, blockhash) => {
    const { blockHeight } = first.state;
    second.state.blockhash = OTHER_HASH;
    first.faults.add({
      when({ method }) {
        first.state.blockHeight =
          blockHeight + (method === "getLatestBlockhash" ? blocks - VALID_BLOCKS : 0);
        return false;
      },
    });
    expect(await readBlockhash()).toMatchObject({ blockhash });
  });

  it("is another endpoint's if that does not know it, and is read twice then", async () => {
    second.state.blockhash = OTHER_HASH;
    await readBlockhash();
    second.state.knowsBlockhashes = false;
    expect(await readBlockhash()).toEqual({
      blockhash: OTHER_HASH,
      calls: [
        ...["0 getLatestBlockhash", "1 isBlockhashValid"],
        ...["1 getLatestBlockhash", "1 getEpochInfo"],
      ],
    });
  });

  it.each(["0OIl", "1".repeat(31)])("is another endpoint's if it is none: %s", async (text) => {
    first.state.blockhash = text;
    second.state.blockhash = OTHER_HASH;
    expect(await readBlockhash()).toMatchObject({ blockhash: OTHER_HASH });
  });

  it("is not another endpoint's that is behind, fails or is slow", async () => {
    second.state.blockhash = OTHER_HASH;
    second.state.knowsBlockhashes = false;
    second.state.slot -= 1;
    expect(await readBlockhash()).toMatchObject({ blockhash: HASH });
    second.state.slot += 1;
    second.faults.add({ then: "reset" });
    expect(await readBlockhash()).toMatchObject({ blockhash: HASH });
    expect((await readBlockhash()).calls).toEqual(["0 getLatestBlockhash"]);

    second.faults.clear();
    client = started.createClient({ rpcTimeoutMs: 10_000 });
    await client.readClusters();
    const release = hold(second, isMethod("isBlockhashValid"));
    expect(await client.getLatestBlockhash()).toMatchObject({ blockhash: HASH });
    release();
  });

  it("is the only endpoint's, without a comparison", async () => {
    client = started.createClient({ urls: [first.url] });
    await readBlockhash();
    expect(await readBlockhash()).toEqual({ blockhash: HASH, calls: ["0 getLatestBlockhash"] });
  });
});

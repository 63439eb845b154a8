import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hold, isMethod } from "../../support/sandbox.ts";
import { startPlainNodes, type PlainNode } from "../../support/doubles/plain-nodes.ts";

const VALID_BLOCKS = 150;
const HASH = "1".repeat(32);
const OTHER_HASH = `${"1".repeat(31)}2`;

let started: Awaited<ReturnType<typeof startPlainNodes>>;
let client: ReturnType<typeof started.createClient>;
let first: PlainNode;
let second: PlainNode;
beforeEach(async () => {
  started = await startPlainNodes(2);
  [first, second] = started.nodes as [PlainNode, PlainNode];
  client = started.createClient();
  await client.readClusters();
  await started.takeCalls();
});
afterEach(() => started.close());

const readBlockhash = async () => {
  const { blockhash } = await client.getLatestBlockhash();
  return { blockhash, calls: await started.takeCalls() };
};
const callsOfFirst = async () =>
  (await readBlockhash()).calls.filter((call) => call.startsWith("0 "));

describe("the latest blockhash", () => {
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

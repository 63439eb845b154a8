import { describe, expect, it } from "vitest";
import { type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { isMethod } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";

const ALL_FEES = { success: true, collected: "3.1000", newBalance: "8.3000" };
/** The slots of a blockhash's life, and some more. */
const BLOCKHASH_LIFE = 250;

let world: World;
let first: LyingEndpoint;
let second: LyingEndpoint;
async function start(
  waits: Record<string, number> = {},
  env: Record<string, string> = {},
): Promise<void> {
  const started = await startWithLyingEndpoints(2, env, { waits });
  world = started.world;
  [first, second] = started.endpoints;
  await world.gateway.start();
}
const collect = async (handle = "creator") => (await world.collect(world.account(handle).id)).body;
const sends = () =>
  [first, second].flatMap(({ calls }) => calls.filter(isMethod("sendTransaction")));
/** The transactions that were signed. */
const signed = () => new Set(sends().map(({ params }) => params[0]));
/** Waits until the collect's transaction was sent to both endpoints, after they had taken it. */
const untilSent = () => expect.poll(() => sends().length).toBeGreaterThan(1);
const drop = (endpoint: LyingEndpoint) => {
  endpoint.lie({ sendTransaction: () => "dropped" });
};

type Lies = Parameters<LyingEndpoint["lie"]>[0];

/** Nothing is known of a landed transaction, whose blockhash has expired. */
const ABSENT: Lies = {
  getTransaction: () => null,
  getSignatureStatuses(tellTruth) {
    const { context, value } = tellTruth();
    return { context, value: value.map(() => null) };
  },
  getEpochInfo(tellTruth) {
    const info = tellTruth();
    return { ...info, blockHeight: Number(info.blockHeight) + BLOCKHASH_LIFE };
  },
  isBlockhashValid: (tellTruth) => ({ ...tellTruth(), value: false }),
};
/** The landed transaction, otherwise. */
const changed = (change: (transaction: any) => object): Lies => ({
  getTransaction(tellTruth) {
    const truth = tellTruth();
    return truth && { ...truth, ...change(truth) };
  },
});

describe("a transaction that one endpoint reports as landed", () => {
  it("is read again if the answer is another transaction, or of other accounts", async () => {
    for (const change of [
      ({ transaction }: any) => ({ transaction: { ...transaction, signatures: ["1".repeat(64)] } }),
      ({ transaction: { message, ...rest } }: any) => ({
        transaction: {
          ...rest,
          message: { ...message, accountKeys: message.accountKeys.toReversed() },
        },
      }),
    ]) {
      await start();
      first.lie(changed(change));
      expect(await collect()).toMatchObject(ALL_FEES);
    }
  });
});

describe("a transaction about which two endpoints contradict each other", () => {
  it("is COLLECT_FAILED with its signature, both hosts are told, and nothing more is signed", async () => {
    await start({ aloneMs: 1_500 });
    second.lie(ABSENT);
    const body = await collect();
    const [landed] = world.sandbox.landedCollects();
    expect(body).toMatchObject({
      ...{ success: false, error: "COLLECT_FAILED", moved: "unknown", retryAfterSeconds: 60 },
      txSignature: landed!.signature,
    });
    expect(body.message).toContain(`not known whether transaction ${landed!.signature} landed`);
    const lines = world.logLines.map((line) => JSON.parse(line));
    const [told] = lines.filter(({ msg }) => msg.startsWith("two chain endpoints contradict"));
    expect(told.hosts).toEqual([first, second].map(({ url }) => new URL(url).host));

    second.stopLying();
    const { chain } = world.sandbox;
    chain.setBalance(world.account("creator").creatorVault, 1_000_000_000n);
    const refused = await collect();
    expect(refused).toMatchObject({ success: false, error: "COLLECT_FAILED" });
    // Of 150 s since the send, the endpoints have contradicted each other for 1.5.
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(149);
    expect(signed().size).toBe(1);
    expect(await collect("artist001")).toMatchObject({ success: true });
  });
});

describe("a transaction that never lands", () => {
  /** Collects at endpoints that drop the transaction, until its blockhash has expired. */
  async function collectInVain(trouble: () => void, run: () => Promise<any> = collect) {
    drop(first);
    drop(second);
    const answer = run();
    await untilSent();
    trouble();
    world.sandbox.chain.advanceSlots(BLOCKHASH_LIFE);
    return await answer;
  }

  it("is expired while the spare hangs: nothing was moved, and the account is free", async () => {
    await start({}, { RPC_TIMEOUT_MS: "5000" });
    const body = await collectInVain(() => void second.faults.add({ then: "hang" }));
    expect(body).toMatchObject({ success: false, error: "COLLECT_FAILED", moved: "no" });
    expect(body.message).toMatch(/^Transaction \w+ did not land and never can. Nothing was moved/);
    expect(body.message).toContain(body.txSignature);
    expect(body.retryAfterSeconds).toBe(1);
    for (const { faults, stopLying } of [first, second]) {
      faults.clear();
      stopLying();
    }
    expect(await collect()).toMatchObject(ALL_FEES);
    expect(world.logLines.join()).not.toContain("replace the endpoint");
  });

  it("of several accounts has moved nothing, and the next one moves all of it once", async () => {
    await start();
    const handles = ["artist001", "artist002"];
    const collects = handles.map((handle) => ({ socialId: world.account(handle).id }));
    const collectMany = async () => {
      const query = `mutation ($collects: [CollectInput!]!) {
        collectMany(collects: $collects) { success }
      }`;
      return (await world.graphql(query, { collects })).body.data.collectMany;
    };
    expect(await collectInVain(() => undefined, collectMany)).toEqual([null, null]);
    for (const { stopLying } of [first, second]) stopLying();
    expect(await collectMany()).toEqual([{ success: true }, { success: true }]);
    for (const handle of handles) expect(world.sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });

  it("does not give its fee back to the budget", async () => {
    // The budget of one transaction.
    await start({}, { FEE_BUDGET_LAMPORTS_PER_HOUR: "12000", MAX_PRIORITY_FEE_LAMPORTS: "0" });
    await collectInVain(() => undefined);
    first.stopLying();
    second.stopLying();
    expect(await collect()).toMatchObject({ error: "COLLECT_FAILED" });
    expect(signed().size).toBe(1);
  });
});

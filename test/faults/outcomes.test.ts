import { describe, expect, it } from "vitest";
import { behindBy, refuse, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { hold, isLook, isMethod, NEVER_MS } from "../support/sandbox.ts";
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

/** Nothing is known of a landed transaction. */
const KNOWS_NOTHING: Parameters<LyingEndpoint["lie"]>[0] = {
  getTransaction: () => null,
  getSignatureStatuses(tellTruth) {
    const { context, value } = tellTruth();
    return { context, value: value.map(() => null) };
  },
};
/** The same, once the blockhash has expired. */
const ABSENT: typeof KNOWS_NOTHING = {
  ...KNOWS_NOTHING,
  getEpochInfo(tellTruth) {
    const info = tellTruth();
    return { ...info, blockHeight: Number(info.blockHeight) + BLOCKHASH_LIFE };
  },
  isBlockhashValid: (tellTruth) => ({ ...tellTruth(), value: false }),
};
/** The landed transaction, otherwise. */
const changed = (change: (transaction: any) => object): typeof KNOWS_NOTHING => ({
  getTransaction(tellTruth) {
    const truth = tellTruth();
    return truth && { ...truth, ...change(truth) };
  },
});

describe("a transaction that one endpoint reports as landed", () => {
  it("is landed at once if the other one knows its slot and error too", async () => {
    await start({ aloneMs: NEVER_MS });
    second.lie({ getTransaction: () => refuse(-32011) });
    expect(await collect()).toMatchObject(ALL_FEES);
  });

  it("has the amounts of the one that returns it", async () => {
    await start({ aloneMs: NEVER_MS });
    first.lie({ getTransaction: () => null });
    expect(await collect()).toMatchObject(ALL_FEES);
  });

  it.each<[string, (endpoint: LyingEndpoint) => void]>([
    ["has failed", ({ faults }) => void faults.add({ when: isLook, then: "reset" })],
    [
      "says null",
      ({ lie }) => {
        lie(KNOWS_NOTHING);
      },
    ],
  ])("is landed once the other one %s for some seconds", async (_, trouble) => {
    for (const which of [0, 1]) {
      await start();
      trouble([first, second][which]!);
      expect(await collect()).toMatchObject(ALL_FEES);
      expect(signed().size).toBe(1);
    }
  });

  it("is landed at once if the other one is behind", async () => {
    await start({ aloneMs: NEVER_MS });
    second.lie(behindBy(50));
    expect(await collect()).toMatchObject(ALL_FEES);
  });

  it.each<[string, (truth: any) => object]>([
    ["the time of its block", () => ({ blockTime: null })],
    ["inner instructions", ({ meta }) => ({ meta: { ...meta, innerInstructions: null } })],
  ])("is landed if the other one leaves out %s", async (_, change) => {
    await start({ aloneMs: NEVER_MS });
    first.lie(changed(change));
    expect(await collect()).toMatchObject(ALL_FEES);
  });

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
  const more = ({ meta }: any) => ({
    meta: {
      ...meta,
      postBalances: meta.postBalances.map((lamports: unknown, i: number) =>
        i === 0 ? lamports : Number(lamports) + 5,
      ),
    },
  });
  it.each<[string, typeof KNOWS_NOTHING]>([
    ["landed, or absent", ABSENT],
    [
      "its slot",
      {
        ...changed(({ slot }) => ({ slot: Number(slot) - 1 })),
        getSignatureStatuses(tellTruth) {
          const { context, value } = tellTruth();
          return {
            context,
            value: value.map((each: any) => each && { ...each, slot: Number(each.slot) - 1 }),
          };
        },
      },
    ],
    ["its error", changed(({ meta }) => ({ meta: { ...meta, err: "AccountInUse" } }))],
    ["its fee", changed(({ meta }) => ({ meta: { ...meta, fee: 9_000 } }))],
    ["its balances", changed(more)],
  ])(
    "is COLLECT_FAILED with its signature, both hosts are told, and nothing more is signed: %s",
    async (_, lies) => {
      await start({ aloneMs: 3_000 });
      second.lie(lies);
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
      // Of 150 s since the send, the endpoints have contradicted each other for three.
      expect(refused.retryAfterSeconds).toBeLessThanOrEqual(147);
      expect(signed().size).toBe(1);
      expect(await collect("artist001")).toMatchObject({ success: true });
    },
  );

  it("is landed if the contradiction ends within some seconds", async () => {
    await start({ aloneMs: NEVER_MS });
    second.lie(ABSENT);
    const answer = collect();
    await expect
      .poll(() => second.calls.filter(isMethod("isBlockhashValid")).length)
      .toBeGreaterThan(2);
    second.stopLying();
    expect(await answer).toMatchObject(ALL_FEES);
  });
});

describe("a transaction that never lands", () => {
  /** Collects at endpoints that drop the transaction, until its blockhash has expired. */
  async function collectInVain(trouble: () => void) {
    drop(first);
    drop(second);
    const answer = collect();
    await untilSent();
    trouble();
    world.sandbox.chain.advanceSlots(BLOCKHASH_LIFE);
    return await answer;
  }

  it.each<[string, () => void]>([
    ["both answer", () => undefined],
    ["the preferred one is down", () => void first.faults.add({ then: "reset" })],
    ["the spare is down", () => void second.faults.add({ then: "reset" })],
    ["the spare hangs", () => void second.faults.add({ then: "hang" })],
    ["the spare answers 429", () => void second.faults.add({ then: { status: 429, body: "" } })],
  ])("is expired: nothing was moved, and the account is free: %s", async (_, trouble) => {
    await start({}, { RPC_TIMEOUT_MS: "5000" });
    const body = await collectInVain(trouble);
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

  it("does not give its fee back to the budget", async () => {
    // The budget of one transaction.
    await start({}, { FEE_BUDGET_LAMPORTS_PER_HOUR: "12000", MAX_PRIORITY_FEE_LAMPORTS: "0" });
    await collectInVain(() => undefined);
    first.stopLying();
    second.stopLying();
    expect(await collect()).toMatchObject({ error: "COLLECT_FAILED" });
    expect(signed().size).toBe(1);
  });

  it("is not given up while an endpoint that answers has not proved it: it is sent until it lands", async () => {
    await start({ aloneMs: NEVER_MS });
    first.lie({ ...ABSENT, sendTransaction: () => "dropped" });
    const lift = second.faults.add({ when: isMethod("sendTransaction"), then: "reset" });
    const answer = collect();
    await expect
      .poll(() => first.calls.filter(isMethod("isBlockhashValid")).length)
      .toBeGreaterThan(3);
    lift();
    await expect.poll(world.sandbox.landedCollects).toHaveLength(1);
    first.stopLying();
    expect(await answer).toMatchObject(ALL_FEES);
    expect(signed().size).toBe(1);
  });

  it("is unknown if nobody proves anything in time, and the account is free then", async () => {
    await start({ unknownAfterMs: 300 });
    drop(first);
    drop(second);
    const body = await collect();
    expect(body.message).toMatch(/^It is not known whether transaction \w+ landed/);
    first.stopLying();
    second.stopLying();
    expect(await collect()).toMatchObject({ success: true });
  });
});

describe("sends", () => {
  it("go to all endpoints, with the same bytes again until it lands", async () => {
    await start();
    const lifts = [first, second].map(({ faults }) =>
      faults.add({ when: isMethod("sendTransaction"), then: "reset" }),
    );
    const answer = collect();
    for (const { calls } of [first, second])
      await expect.poll(() => calls.filter(isMethod("sendTransaction")).length).toBeGreaterThan(2);
    lifts[1]!();
    expect(await answer).toMatchObject(ALL_FEES);
    expect(signed().size).toBe(1);
  });

  it("the first look comes when the transaction should be final", async () => {
    await start({ resendMs: NEVER_MS, finalityMs: 50 });
    const releases = [first, second].map((each) => hold(each, isMethod("getTransaction")));
    const answer = collect();
    const { chain, landedCollects } = world.sandbox;
    await expect
      .poll(() => (landedCollects()[0]?.slot ?? Infinity) <= chain.slot("finalized"))
      .toBe(true);
    for (const release of releases) release();
    expect(await answer).toMatchObject(ALL_FEES);
    const looks = [first, second].flatMap(({ calls }) => calls.filter(isLook));
    expect(looks.map(({ method }) => method)).toEqual(["getTransaction", "getTransaction"]);
  });
});

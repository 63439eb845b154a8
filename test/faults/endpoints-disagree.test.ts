import { afterEach, expect, it } from "vitest";
import type { LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWithPreferredLiar } from "../support/preferred-liar.ts";
import type { World } from "../support/world.ts";

let world: World;
let liar: LyingEndpoint;
afterEach(async () => {
  liar.stopLying();
  world.sandbox.rpc.faults.clear();
  await world.close();
  await liar.close();
});

const start = async (env: Record<string, string> = {}) => {
  ({ world, liar } = await startWithPreferredLiar(env));
};
const collect = () => world.collect(world.account("creator").id);
const ALL_FEES = { success: true, collected: "3.1000", newBalance: "8.3000" };
const KNOWS_NO_TRANSACTION = {
  getSignatureStatuses(tellTruth: () => any) {
    const { context, value } = tellTruth();
    return { context, value: value.map(() => null) };
  },
};
/** The slots of a blockhash's life and the 32 until a block is finalized, and some more. */
const SLOTS_PAST_BLOCKHASH = 250;

it("a transaction that the first endpoint does not know is confirmed by the second", async () => {
  await start();
  liar.lie(KNOWS_NO_TRANSACTION);
  const answer = collect();
  await expect.poll(world.sandbox.landedCollects).toHaveLength(1);
  world.sandbox.chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
  expect((await answer).body).toMatchObject(ALL_FEES);
});

it("a landed transaction that the first endpoint cannot return is read at the second", async () => {
  await start({ COLLECT_TIMEOUT_MS: "30000" });
  liar.lie({ getTransaction: () => null });
  expect((await collect()).body).toMatchObject(ALL_FEES);
});

it("a transaction other than the landed one is not trusted, whatever it moved", async () => {
  await start({ COLLECT_TIMEOUT_MS: "30000" });
  liar.lie({
    getTransaction(tellTruth) {
      const result = tellTruth();
      if (!result) return null;
      const { transaction, meta } = result;
      return {
        ...result,
        transaction: { ...transaction, signatures: ["1".repeat(64)] },
        meta: { ...meta, postBalances: meta.preBalances },
      };
    },
  });
  expect((await collect()).body).toMatchObject(ALL_FEES);
});

it("balances that belong to other accounts are not trusted", async () => {
  await start({ COLLECT_TIMEOUT_MS: "30000" });
  liar.lie({
    getTransaction(tellTruth) {
      const result = tellTruth();
      if (!result) return null;
      const { message } = result.transaction;
      result.transaction.message = { ...message, accountKeys: message.accountKeys.toReversed() };
      return result;
    },
  });
  expect((await collect()).body).toMatchObject(ALL_FEES);
});

it("a transaction is not given up when only one of two endpoints says that it expired", async () => {
  await start();
  const { rpc } = world.sandbox;
  liar.lie({
    ...KNOWS_NO_TRANSACTION,
    sendTransaction: () => "dropped",
    getEpochInfo(tellTruth) {
      const info = tellTruth();
      return { ...info, blockHeight: Number(info.blockHeight) + SLOTS_PAST_BLOCKHASH };
    },
    isBlockhashValid: (tellTruth) => ({ ...tellTruth(), value: false }),
  });
  // The third send is the first that reaches the honest node, after the liar has said twice that it
  // expired.
  rpc.faults.add({ when: isMethod("sendTransaction"), times: 2, then: "reset" });
  expect((await collect()).body).toMatchObject(ALL_FEES);
  expect(liar.calls.filter(isMethod("getEpochInfo")).length).toBeGreaterThan(0);
  expect(world.sandbox.landedCollects()).toHaveLength(1);
});

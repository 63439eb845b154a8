import { afterEach, expect, it, vi } from "vitest";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let liar: LyingEndpoint;
afterEach(async () => {
  vi.restoreAllMocks();
  liar.stopLying();
  world.sandbox.rpc.faults.clear();
  await world.close();
  await liar.close();
});

/** A gateway that uses an endpoint that lies, and after it perhaps an honest one. */
const start = async ({
  withHonest = false,
  env = {},
}: {
  withHonest?: boolean;
  env?: Record<string, string>;
}) => {
  world = await startWorld(async (sandbox) => {
    liar = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: withHonest ? `${liar.url},${sandbox.rpc.url}` : liar.url, ...env };
  });
};
const collect = (handle = "creator") => world.collect(world.account(handle).id);
const totalOf = async (handle: string) => (await world.lookup(handle)).body.balance?.total;
const isReady = async () => (await world.request("/readyz")).status === 200;

const FUTURE_SLOT = 10 ** 12;
/** Reads fail soon while no endpoint has reached the required slot. */
const SHORT_READS = { RPC_TIMEOUT_MS: "2000" };
const claimFutureStatuses = () => {
  let looks = 0;
  liar.lie({
    // The status tells first that it landed.
    getTransaction: (tellTruth) => (looks++ === 0 ? null : tellTruth()),
    getSignatureStatuses(tellTruth) {
      const { value } = tellTruth();
      return {
        context: { slot: FUTURE_SLOT },
        value: value.map((status: object | null) => status && { ...status, slot: FUTURE_SLOT }),
      };
    },
  });
};

it("a transaction in slot 10^12 does not stop reads", async () => {
  await start({ env: SHORT_READS });
  claimFutureStatuses();
  expect((await collect()).body).toMatchObject({ success: true, collected: "3.1000" });
  liar.stopLying();
  expect(await totalOf("creator")).toBe("8.3000");
});

it("a first answer for slot 10^12 stops reads for 10 s at most, and the process is not ready meanwhile", async () => {
  await start({ env: SHORT_READS });
  claimFutureStatuses();
  const claimFuture = (tellTruth: () => any) => ({
    ...tellTruth(),
    context: { slot: FUTURE_SLOT },
  });
  liar.lie({
    getMultipleAccounts: claimFuture,
    simulateTransaction: claimFuture,
    getLatestBlockhash: claimFuture,
  });
  expect((await collect()).status).toBe(200);
  liar.stopLying();
  expect((await world.lookup("creator")).body.error).toBe("LOOKUP_FAILED");
  expect(await isReady()).toBe(false);

  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + 10_000);
  expect(await totalOf("creator")).toBe("8.3000");
  expect(await isReady()).toBe(true);
});

it("a blockhash reported as valid for millions of blocks is replaced by the next endpoint's", async () => {
  await start({ withHonest: true });
  liar.lie({
    getLatestBlockhash(tellTruth) {
      const { context, value } = tellTruth();
      return { context, value: { ...value, lastValidBlockHeight: 4 * 10 ** 12 } };
    },
  });
  const drops = [world.sandbox.rpc, liar].map((rpc) =>
    rpc.faults.add({ when: isMethod("sendTransaction"), then: "reset" }),
  );
  const lost = collect();
  await expect.poll(() => liar.calls.some(isMethod("sendTransaction"))).toBe(true);
  world.sandbox.chain.advanceSlots(200);
  expect((await lost).body.error).toBe("COLLECT_FAILED");
  // The account is not closed for the life of such a blockhash.
  for (const lift of drops) lift();
  expect((await collect()).body).toMatchObject({ success: true, collected: "3.1000" });
});

it("a block height that is impossibly far ahead makes neither a blockhash credible nor a transaction expire", async () => {
  await start({ withHonest: true });
  expect((await collect("artist001")).status).toBe(200);
  liar.lie({
    getEpochInfo(tellTruth) {
      const info = tellTruth();
      return { ...info, blockHeight: Number(info.blockHeight) + 10 ** 6 };
    },
    getLatestBlockhash(tellTruth) {
      const { context, value } = tellTruth();
      const lastValidBlockHeight = Number(value.lastValidBlockHeight) + 10 ** 6;
      return { context, value: { ...value, lastValidBlockHeight } };
    },
  });
  const before = world.sandbox.rpc.calls.filter(isMethod("getLatestBlockhash")).length;
  expect((await collect()).body).toMatchObject({ collected: "3.1000" });
  expect(world.sandbox.rpc.calls.filter(isMethod("getLatestBlockhash")).length).toBe(before + 1);
});

it("a single node whose finalized block is impossibly far ahead cannot make a transaction expire", async () => {
  await start({});
  expect((await collect("artist001")).status).toBe(200);
  onNext(liar, isMethod("sendTransaction"), () => {
    liar.lie({
      getEpochInfo(tellTruth) {
        const info = tellTruth();
        return { ...info, blockHeight: Number(info.blockHeight) + 10 ** 6 };
      },
      isBlockhashValid: (tellTruth) => ({ ...tellTruth(), value: false }),
    });
    liar.faults.add({ when: isMethod("sendTransaction"), times: 2, then: "reset" });
  });
  expect((await collect()).body).toMatchObject({ collected: "3.1000" });
});

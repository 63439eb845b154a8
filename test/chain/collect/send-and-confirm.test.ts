import { createPrivateKey, sign } from "node:crypto";
import { Registry } from "@prometheus-io/client";
import { getBase58Decoder } from "@solana/codecs-strings";
import { SystemProgram } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { toTransaction } from "../../../src/chain/units/message.ts";
import { createConfirmation } from "../../../src/chain/collect/send-and-confirm.ts";
import type { Landed } from "../../../src/chain/rpc/outcome.ts";
import type { Overrides } from "../../../src/services.ts";
import { createRpc } from "../../../src/chain/rpc/rpc-client.ts";
import { readConfig } from "../../../src/config.ts";
import { createLogger } from "../../../src/observability/log.ts";
import { decodeTransaction } from "../../../src/sandbox/chain/wire-transaction.ts";
import { createCallUpstream } from "../../../src/upstream/http.ts";
import { startLyingEndpoint } from "../../support/doubles/lying-endpoint.ts";
import { eventually } from "../../support/eventually.ts";
import { compileWithConfig } from "../../support/messages.ts";
import { isMethod, NEVER_MS, SHORT_WAITS, startTestSandbox } from "../../support/sandbox.ts";

const PKCS8_ED25519 = Buffer.from("302e020100300506032b657004220420", "hex");
/** The slots of a blockhash's life and the 32 until a block is finalized, and some more. */
const SLOTS_PAST_BLOCKHASH = 250;

/** Closes what a test has started. */
interface TestContext {
  onTestFinished: (close: () => Promise<void>) => void;
}

/** A signed transaction of version 1, and endpoints that accept and drop it. */
async function start(
  { onTestFinished }: TestContext,
  { endpoints: count = 2, ...changed }: Overrides & { endpoints?: number } = {},
) {
  const sandbox = await startTestSandbox();
  const { chain } = sandbox;
  const endpoints = await Promise.all(
    Array.from({ length: count }, () => startLyingEndpoint(sandbox)),
  );
  onTestFinished(async () => {
    await Promise.all([sandbox, ...endpoints].map((part) => part.close()));
  });
  for (const endpoint of endpoints) endpoint.lie({ sendTransaction: () => "dropped" });

  const { feePayerKeypair: feePayer } = readConfig(sandbox.env).secrets;
  const { blockhash, lastValidBlockHeight } = chain.latestBlockhash("finalized");
  const { publicKey } = feePayer;
  const transfer = SystemProgram.transfer({
    fromPubkey: publicKey,
    toPubkey: publicKey,
    lamports: 1,
  });
  const bytes = compileWithConfig({ blockhash, computeUnitLimit: 1_000 }, publicKey, transfer);
  const pkcs8 = Buffer.concat([PKCS8_ED25519, feePayer.secretKey.subarray(0, 32)]);
  const signature = sign(
    null,
    bytes,
    createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" }),
  );
  const transaction = {
    base64: toTransaction(bytes, publicKey.toBase58(), signature),
    signature: getBase58Decoder().decode(signature),
    lastValidBlockHeight,
  };

  const log = createLogger("silent");
  const urls = endpoints.map(({ url }) => new URL(url));
  const waits = { ...SHORT_WAITS, ...changed };
  const callUpstream = createCallUpstream(new Registry());
  const rpc = createRpc({ ...waits, urls, rpcTimeoutMs: 60_000, callUpstream, log });
  await rpc.readClusters();
  const { confirm } = createConfirmation({ ...waits, rpc });
  return {
    chain,
    endpoints,
    transaction,
    confirm: (changed: Partial<typeof transaction> = {}) =>
      confirm({ ...transaction, ...changed }, false),
    confirmSent: () => confirm(transaction, true),
    /** Resolves once this many calls of a method have been made at each endpoint. */
    asked: (method: string, times: number) =>
      eventually(() => {
        for (const { calls } of endpoints)
          expect(calls.filter(isMethod(method)).length).toBeGreaterThanOrEqual(times);
      }),
    /** Lets each of these endpoints land what it receives. */
    land: (...indexes: number[]) => {
      for (const index of indexes) endpoints[index]!.stopLying();
    },
  };
}
type Started = Awaited<ReturnType<typeof start>>;
type Endpoint = Started["endpoints"][number];

const EXPIRED = { kind: "expired" };
const callsOf = ({ calls }: Endpoint, method: string) => calls.filter(isMethod(method)).length;

/** An endpoint that does not know transactions, in a state that is as new as the others'. */
const forget = (endpoint: Endpoint) => {
  endpoint.lie({
    getTransaction: () => null,
    getSignatureStatuses: (tellTruth) => ({ ...tellTruth(), value: [null] }),
  });
};
/** An endpoint that also says that the blockhash has expired. */
const claimExpiry = (endpoint: Endpoint) => {
  forget(endpoint);
  endpoint.lie({
    getEpochInfo(tellTruth) {
      const info = tellTruth();
      return { ...info, blockHeight: Number(info.blockHeight) + SLOTS_PAST_BLOCKHASH };
    },
    isBlockhashValid: (tellTruth) => ({ ...tellTruth(), value: false }),
  });
};

describe.concurrent("a transaction that lands", () => {
  it.for([1, 2, 3])(
    "is landed when two endpoints return it, or the only one: %i",
    async (count, context) => {
      const { confirm, land, chain, transaction, endpoints } = await start(context, {
        ...{ endpoints: count, aloneMs: NEVER_MS, resendMs: NEVER_MS, finalityMs: 300 },
      });
      land(...endpoints.keys());
      const outcome = await confirm();
      const { slot, blockTime, feeLamports: fee } = chain.landed(transaction.signature)!;
      expect(outcome).toMatchObject({
        kind: "landed",
        err: null,
        slot,
        transaction: { fee, blockTime },
      });
    },
  );

  it("is sent to all endpoints, with the same bytes every two seconds", async (context) => {
    const { confirm, land, endpoints, asked, transaction } = await start(context);
    const outcome = confirm();
    await asked("sendTransaction", 4);
    land(0, 1);
    expect(await outcome).toMatchObject({ kind: "landed", err: null });
    const sent = endpoints.flatMap(({ calls }) => calls.filter(isMethod("sendTransaction")));
    expect(new Set(sent.map(({ params }) => params[0]))).toEqual(new Set([transaction.base64]));
  });

  it("is sent by another replica, perhaps: it is looked at first", async (context) => {
    const waits = { resendMs: NEVER_MS };
    const { confirmSent, land, endpoints, chain, transaction } = await start(context, waits);
    land(0, 1);
    chain.send(decodeTransaction(Buffer.from(transaction.base64, "base64")));
    expect(await confirmSent()).toMatchObject({ kind: "landed" });
    expect(endpoints.map((each) => callsOf(each, "sendTransaction"))).toEqual([0, 0]);
  });

  it("is landed although the block heights cannot be read", async (context) => {
    const { confirm, land, endpoints } = await start(context);
    land(0, 1);
    for (const { faults } of endpoints)
      faults.add({ when: isMethod("getEpochInfo"), then: "hang" });
    expect(await confirm()).toMatchObject({ kind: "landed" });
  });

  it("is landed by its status when no endpoint returns it", async (context) => {
    const { confirm, land, endpoints } = await start(context, { aloneMs: NEVER_MS });
    land(0, 1);
    for (const endpoint of endpoints) endpoint.lie({ getTransaction: () => null });
    const { kind, transaction } = (await confirm()) as Landed;
    expect([kind, transaction]).toEqual(["landed", undefined]);
  });

  it("is landed by one endpoint at once while the other one is more than a second behind", async (context) => {
    // The first look comes once it is final: before, it may find only the status.
    const waits = { aloneMs: NEVER_MS, resendMs: NEVER_MS, finalityMs: 300 };
    const { confirm, land, endpoints, chain } = await start(context, waits);
    land(0, 1);
    const slot = chain.slot("finalized");
    forget(endpoints[1]!);
    endpoints[1]!.lie({ getSignatureStatuses: () => ({ context: { slot }, value: [null] }) });
    chain.advanceSlots(10);
    expect(await confirm()).toMatchObject({ kind: "landed", transaction: { err: null } });
  });
});

describe.concurrent("a transaction that can no longer land", () => {
  it.for([1, 2, 3])("is expired when all endpoints prove it: %i", async (count, context) => {
    const { chain, confirm } = await start(context, { endpoints: count });
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    expect(await confirm()).toEqual(EXPIRED);
  });

  it("is expired while one provider cannot search the history", async (context) => {
    const { chain, confirm, endpoints, asked } = await start(context);
    endpoints[1]!.faults.add({
      when: isMethod("getSignatureStatuses"),
      then: { status: 429, body: "" },
    });
    const outcome = confirm();
    await asked("sendTransaction", 3);
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    expect(await outcome).toEqual(EXPIRED);
  });

  it.for<[string, (second: Endpoint) => unknown]>([
    [
      "says that it may land",
      (second) => {
        second.lie({ getEpochInfo: (tellTruth) => ({ ...tellTruth(), blockHeight: 1 }) });
      },
    ],
    [
      "accepts its blockhash",
      (second) => {
        second.lie({ isBlockhashValid: (tellTruth) => ({ ...tellTruth(), value: true }) });
      },
    ],
    [
      "searches a history that ends before its own finalized slot",
      (second) => {
        second.lie({
          getSignatureStatuses(tellTruth) {
            const { context } = tellTruth();
            return { context: { slot: Number(context.slot) - 10 }, value: [null] };
          },
        });
      },
    ],
  ])(
    "is not expired while one endpoint %s, but unknown in the end",
    async ([, behave], context) => {
      const { chain, confirm, endpoints } = await start(context, { unknownAfterMs: 800 });
      behave(endpoints[1]!);
      chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
      expect(await confirm()).toEqual({ kind: "unknown", hosts: [] });
    },
  );
});

describe.concurrent("a transaction of which nothing is certain", () => {
  it("is landed once endpoints contradict each other no more", async (context) => {
    const { confirm, land, endpoints } = await start(context, { aloneMs: NEVER_MS });
    land(0);
    claimExpiry(endpoints[1]!);
    const outcome = confirm();
    await eventually(() => {
      expect(callsOf(endpoints[1]!, "getEpochInfo")).toBeGreaterThan(3);
    });
    land(1);
    expect(await outcome).toMatchObject({ kind: "landed", err: null });
  });

  it("does not expire by a last height that is too low", async (context) => {
    const { confirm, land, chain, asked } = await start(context);
    const outcome = confirm({ lastValidBlockHeight: chain.blockHeight("finalized") - 1 });
    await asked("isBlockhashValid", 3);
    land(0, 1);
    expect(await outcome).toMatchObject({ kind: "landed", err: null });
  });
});

import { createPrivateKey, sign } from "node:crypto";
import { Registry } from "@prometheus-io/client";
import { getBase58Decoder } from "@solana/codecs-strings";
import { SystemProgram } from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toTransaction } from "../../../src/chain/units/message.ts";
import { createConfirmation } from "../../../src/chain/collect/send-and-confirm.ts";
import type { TransactionOutcome } from "../../../src/chain/rpc/outcome-checks.ts";
import type { Landed } from "../../../src/chain/rpc/decide-outcome.ts";
import type { Overrides } from "../../../src/services.ts";
import { createRpc } from "../../../src/chain/rpc/rpc-client.ts";
import { readConfig } from "../../../src/config.ts";
import { createLogger } from "../../../src/observability/log.ts";
import { createCallUpstream } from "../../../src/upstream/http.ts";
import { OTHER_CLUSTER, startLyingEndpoint } from "../../support/doubles/lying-endpoint.ts";
import { eventually } from "../../support/eventually.ts";
import { compileWithConfig } from "../../support/messages.ts";
import {
  isMethod,
  NEVER_MS,
  SHORT_AGREEMENT,
  SHORT_WAITS,
  startTestSandbox,
} from "../../support/sandbox.ts";

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
  {
    endpoints: count = 2,
    repeat = 1,
    ...changed
  }: Overrides & { endpoints?: number; repeat?: number } = {},
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
  const urls = Array.from({ length: repeat }, () =>
    endpoints.map(({ url }) => new URL(url)),
  ).flat();
  const waits = { ...SHORT_WAITS, agreeMs: NEVER_MS, reportMs: NEVER_MS, ...changed };
  const callUpstream = createCallUpstream(new Registry());
  const rpc = createRpc({ ...waits, urls, rpcTimeoutMs: 60_000, callUpstream, log });
  const { confirm, readLanded } = createConfirmation({ ...waits, rpc });
  return {
    chain,
    endpoints,
    transaction,
    readLanded,
    confirm: (changed: Partial<typeof transaction> = {}) =>
      confirm({ ...transaction, ...changed }, { maybeSent: false }),
    /** Resolves once every endpoint has been asked `times` whether the transaction expired. */
    asked: (times: number) =>
      eventually(() => {
        for (const { calls } of endpoints)
          expect(calls.filter(isMethod("getEpochInfo")).length).toBeGreaterThanOrEqual(times);
      }),
  };
}
type Started = Awaited<ReturnType<typeof start>>;
type Endpoint = Started["endpoints"][number];

const FINAL = { slot: 1, err: null, confirmations: null, confirmationStatus: "finalized" };
const PROCESSED = { slot: 1, err: null, confirmations: 0, confirmationStatus: "processed" };

/** Says that the blockhash has expired and that there is no such transaction. */
const claimExpiry = (liar: Endpoint) => {
  liar.lie({
    getEpochInfo(tellTruth) {
      const info = tellTruth();
      return { ...info, blockHeight: Number(info.blockHeight) + SLOTS_PAST_BLOCKHASH };
    },
    isBlockhashValid: (tellTruth) => ({ ...tellTruth(), value: false }),
    getSignatureStatuses: (tellTruth) => ({ ...tellTruth(), value: [null] }),
  });
};

describe.concurrent("a transaction that can no longer land", () => {
  it("is expired when both endpoints prove it", async (context) => {
    const { chain, confirm } = await start(context);
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    expect(await confirm()).toEqual({ kind: "expired", agreeing: 2 });
  });

  it("is expired when the only configured endpoint proves it, even if its URL is configured twice", async (context) => {
    const { chain, confirm } = await start(context, { endpoints: 1, repeat: 2 });
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    expect(await confirm()).toEqual({ kind: "expired", agreeing: 1 });
  });

  it("is expired when two of three endpoints prove it and the third does not answer", async (context) => {
    const { chain, confirm, endpoints } = await start(context, { endpoints: 3 });
    endpoints[0]!.faults.add({ then: "reset" });
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    expect(await confirm()).toEqual({ kind: "expired", agreeing: 2 });
  });

  it("is expired when its bytes are not a transaction", async (context) => {
    const { chain, confirm } = await start(context);
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    expect(await confirm({ base64: "AQID" })).toEqual({ kind: "expired", agreeing: 2 });
  });
});

/** After the blockhash has expired, the second of two endpoints behaves like this. */
const whenSecond =
  (behave: (second: Endpoint) => unknown) =>
  ({ chain, endpoints, confirm }: Started) => {
    behave(endpoints[1]!);
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    return confirm();
  };
const UNKNOWN: [string, (started: Started) => Promise<TransactionOutcome>][] = [
  [
    "one of two endpoints does not answer",
    whenSecond(({ faults }) => faults.add({ then: "reset" })),
  ],
  ["one of two endpoints never responds", whenSecond(({ faults }) => faults.add({ then: "hang" }))],
  [
    "one of two endpoints is on another cluster",
    whenSecond((second) => {
      second.lie(OTHER_CLUSTER);
    }),
  ],
  [
    "one of two endpoints stopped before the blockhash expired",
    whenSecond((second) => {
      second.lie({ getEpochInfo: (tellTruth) => ({ ...tellTruth(), blockHeight: 1 }) });
    }),
  ],
  [
    "one of two endpoints cannot search the history",
    whenSecond(({ faults }) =>
      faults.add({ when: isMethod("getSignatureStatuses"), then: { status: 429, body: "" } }),
    ),
  ],
  [
    "one of two endpoints searches a history that ends before its own finalized slot",
    whenSecond((second) => {
      second.lie({ getSignatureStatuses: () => ({ context: { slot: 1 }, value: [null] }) });
    }),
  ],
  [
    "one of two endpoints says that the transaction is processed",
    whenSecond((second) => {
      second.lie({ getSignatureStatuses: (tellTruth) => ({ ...tellTruth(), value: [PROCESSED] }) });
    }),
  ],
  [
    "one of two endpoints says that the transaction is final",
    whenSecond((second) => {
      second.lie({ getSignatureStatuses: (tellTruth) => ({ ...tellTruth(), value: [FINAL] }) });
    }),
  ],
  [
    "one of two endpoints lies that it expired, and the other one does not answer",
    ({ endpoints: [liar, honest], confirm }) => {
      claimExpiry(liar!);
      honest!.faults.add({ then: "reset" });
      return confirm();
    },
  ],
  [
    "one of two endpoints lies that it expired, and the other one says that it may still land",
    ({ endpoints: [liar], confirm }) => {
      claimExpiry(liar!);
      return confirm();
    },
  ],
  [
    "its last valid height is impossibly far ahead",
    ({ chain, confirm }) => {
      chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
      return confirm({ lastValidBlockHeight: 4 * 10 ** 12 });
    },
  ],
];

describe.concurrent("the outcome of a transaction is unknown when", () => {
  // Each outcome takes a while, so all of them start together.
  const closers: (() => Promise<void>)[] = [];
  const outcomes = new Map<string, Promise<TransactionOutcome>>();
  beforeAll(async () => {
    const context = { onTestFinished: (close: () => Promise<void>) => void closers.push(close) };
    for (const [name, run] of UNKNOWN) {
      outcomes.set(name, run(await start(context, { ...SHORT_AGREEMENT, reportMs: 1_000 })));
    }
  });
  afterAll(() => Promise.all(closers.map((close) => close())));

  it.each(UNKNOWN)("%s", async (name) => {
    expect(await outcomes.get(name)).toEqual({ kind: "unknown" });
  });
});

describe.concurrent("a single endpoint that lies", () => {
  it.for([0, 1, 2])(
    "cannot make a transaction's outcome unknown while two others may still execute it: endpoint %i",
    async (index, context) => {
      const { confirm, endpoints, asked } = await start(context, { endpoints: 3, agreeMs: 0 });
      claimExpiry(endpoints[index]!);
      const outcome = confirm();
      await asked(4);
      for (const honest of endpoints.filter((_, i) => i !== index)) honest.stopLying();
      expect(await outcome).toMatchObject({ kind: "landed", err: null });
    },
  );

  it("cannot make a transaction expire by a last height that is too low", async (context) => {
    const { confirm, endpoints, transaction, chain, asked } = await start(context);
    const lastValidBlockHeight = chain.blockHeight("finalized") - 1;
    const outcome = confirm({ lastValidBlockHeight });
    await asked(2);
    for (const endpoint of endpoints) endpoint.stopLying();
    expect(await outcome).toMatchObject({ kind: "landed", err: null });
    expect(chain.landed(transaction.signature)).toBeDefined();
  });

  it("cannot make the outcome unknown by a last height that is too high while the transaction may land", async (context) => {
    const { confirm, endpoints, asked } = await start(context, { agreeMs: 0 });
    const outcome = confirm({ lastValidBlockHeight: 4 * 10 ** 12 });
    await asked(3);
    for (const endpoint of endpoints) endpoint.stopLying();
    expect(await outcome).toMatchObject({ kind: "landed", err: null });
  });

  it("cannot make a transaction expire after it landed elsewhere", async (context) => {
    const { confirm, endpoints, chain, asked } = await start(context, { endpoints: 3 });
    claimExpiry(endpoints[0]!);
    const outcome = confirm();
    await asked(1);
    endpoints[2]!.stopLying();
    await eventually(() => {
      expect(chain.ledger()).toHaveLength(1);
    });
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    expect(await outcome).toMatchObject({ kind: "landed", err: null });
  });

  it("does not make the outcome unknown when it withdraws its report", async (context) => {
    const agreeMs = 20 * SHORT_WAITS.resendMs;
    const { confirm, endpoints, asked } = await start(context, { agreeMs });
    const [liar, honest] = endpoints as [Endpoint, Endpoint];
    claimExpiry(liar);
    let reports = 0;
    liar.lie({
      getEpochInfo(tellTruth) {
        const info = tellTruth();
        return reports++ === 0
          ? { ...info, blockHeight: Number(info.blockHeight) + SLOTS_PAST_BLOCKHASH }
          : info;
      },
    });
    const outcome = confirm();
    // Between two reports passes at least the time between two sends.
    await asked(25);
    honest.stopLying();
    expect(await outcome).toMatchObject({ kind: "landed" });
  });
});

describe.concurrent("a transaction whose status an endpoint gets wrong", () => {
  it("is landed although the block heights cannot be read", async (context) => {
    const { confirm, endpoints } = await start(context);
    for (const endpoint of endpoints) {
      endpoint.stopLying();
      endpoint.faults.add({ when: isMethod("getEpochInfo"), then: "hang" });
    }
    expect(await confirm()).toMatchObject({ kind: "landed" });
  });

  it("is final by another endpoint when the first one never reports it as final", async (context) => {
    const { confirm, endpoints, transaction, chain } = await start(context);
    for (const endpoint of endpoints) endpoint.stopLying();
    endpoints[0]!.lie({
      getSignatureStatuses: (tellTruth) => ({ ...tellTruth(), value: [PROCESSED] }),
    });
    const outcome = await confirm();
    const { slot } = chain.landed(transaction.signature)!;
    expect(outcome).toMatchObject({ kind: "landed", err: null, slot });
  });

  it("is landed when two endpoints say so, although no endpoint returns the transaction", async (context) => {
    const { confirm, endpoints } = await start(context);
    for (const endpoint of endpoints) {
      endpoint.stopLying();
      endpoint.lie({ getTransaction: () => null });
    }
    expect(await confirm()).toMatchObject({ kind: "landed", err: null });
  });

  const withError = (tellTruth: () => any) => {
    const result = tellTruth();
    return result && { ...result, meta: { ...result.meta, err: "ProgramFailedToComplete" } };
  };

  it.for([0, 1, 2])(
    "has the error and the block's time that two of three endpoints return: endpoint %i lies",
    async (index, context) => {
      const { confirm, endpoints, transaction, chain } = await start(context, { endpoints: 3 });
      for (const endpoint of endpoints) endpoint.stopLying();
      endpoints[index]!.lie({ getTransaction: withError });
      const outcome = await confirm();
      const { slot, blockTime } = chain.landed(transaction.signature)!;
      const counted = { err: null, slot, blockTime, isCertain: true };
      expect(outcome).toMatchObject({ kind: "landed", err: null, slot, transaction: counted });
    },
  );

  it("is landed without an error, a slot or amounts while two endpoints differ on it", async (context) => {
    const { confirm, readLanded, endpoints, transaction } = await start(context);
    for (const endpoint of endpoints) endpoint.stopLying();
    endpoints[1]!.lie({ getTransaction: withError });
    const outcome = await confirm();
    expect(outcome).toEqual({ kind: "landed", err: undefined, slot: 0 });
    expect(await readLanded(transaction, outcome as Landed, 0)).toBeUndefined();
    endpoints[1]!.stopLying();
    expect(await readLanded(transaction, outcome as Landed, 60_000)).toMatchObject({ err: null });
  });

  it("is as one endpoint returns it while the other fails", async (context) => {
    const { confirm, endpoints } = await start(context);
    for (const endpoint of endpoints) endpoint.stopLying();
    endpoints[1]!.faults.add({ then: "reset" });
    expect(await confirm()).toMatchObject({ kind: "landed", transaction: { isCertain: false } });
  });

  it("is sent again while one endpoint claims that it landed and another does not know it", async (context) => {
    const { confirm, endpoints, chain, transaction } = await start(context);
    const [liar, honest] = endpoints as [Endpoint, Endpoint];
    liar.lie({
      getSignatureStatuses: (tellTruth) => ({ ...tellTruth(), value: [FINAL] }),
    });
    const outcome = confirm();
    await eventually(() => {
      expect(honest.calls.filter(isMethod("sendTransaction")).length).toBeGreaterThan(4);
    });
    honest.stopLying();
    liar.stopLying();
    expect(await outcome).toMatchObject({ kind: "landed", err: null });
    expect(chain.landed(transaction.signature)).toBeDefined();
  });

  it("is read by one call at a time for all who wait for it, each until its own deadline", async (context) => {
    const { chain, confirm, readLanded, endpoints, transaction } = await start(context, {
      endpoints: 1,
    });
    const [node] = endpoints as [Endpoint];
    node.stopLying();
    let misses = Infinity;
    node.lie({ getTransaction: (tellTruth) => (misses-- > 0 ? null : tellTruth()) });
    const outcome = (await confirm()) as Landed;
    expect(outcome).toMatchObject({ kind: "landed" });
    misses = 3;
    node.calls.length = 0;
    const timeouts = [-1, 60_000, 60_001, 60_002];
    const [late, ...others] = await Promise.all(
      timeouts.map((ms) => readLanded(transaction, outcome, ms)),
    );
    expect(late).toBeUndefined();
    const { blockTime } = chain.landed(transaction.signature)!;
    expect(others).toMatchObject(Array(3).fill({ err: null, blockTime }));
    expect(node.calls.filter(isMethod("getTransaction"))).toHaveLength(4);
  });
});

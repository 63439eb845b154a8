import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { Registry } from "@prometheus-io/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createFeeBudget } from "../../../src/chain/collect/fee-budget.ts";
import { createFeePayer } from "../../../src/chain/collect/fee-payer.ts";
import { toLamports } from "../../../src/chain/lamports.ts";
import { createLogger } from "../../../src/observability/log.ts";
import { createBudgetMetrics } from "../../../src/upstream/budget/budget-metrics.ts";

const keypair = Keypair.generate();
const programId = Keypair.generate().publicKey;
const log = createLogger("silent");
const budget = (lamports: number) =>
  createFeeBudget({
    feePayer: keypair.publicKey.toBase58(),
    budgetLamportsPerHour: toLamports(lamports),
    // The caller's share is at least the highest fee.
    maxPriorityFee: toLamports(lamports),
    redis: undefined,
    metrics: createBudgetMetrics(new Registry(), log),
    log,
  });
const spending = () => ({
  spendable: undefined,
  moved: toLamports(10 ** 9),
  payers: new Map([["caller", undefined]]),
});
const feePayer = createFeePayer({
  keypair,
  programIds: [programId.toBase58()],
  maxPriorityFee: toLamports(1_000),
  budget: budget(1_000_000),
});
const other = Keypair.generate().publicKey;
const call = (
  program: PublicKey,
  ...accounts: { pubkey: PublicKey; isSigner: boolean; isWritable: boolean }[]
) => new TransactionInstruction({ programId: program, keys: accounts, data: Buffer.alloc(8) });
const limit = (units: number) => ComputeBudgetProgram.setComputeUnitLimit({ units });
const price = (microLamports: bigint) => ComputeBudgetProgram.setComputeUnitPrice({ microLamports });
const message = (payerKey: PublicKey, ...instructions: TransactionInstruction[]) =>
  new TransactionMessage({
    payerKey,
    recentBlockhash: PublicKey.default.toBase58(),
    instructions,
  }).compileToLegacyMessage();

afterEach(() => {
  vi.useRealTimers();
});

describe("the fee payer", () => {
  it("signs calls to the allowed programs", async () => {
    const allowed = message(
      keypair.publicKey,
      ComputeBudgetProgram.setComputeUnitLimit({ units: 1 }),
      call(programId, { pubkey: other, isSigner: false, isWritable: true }),
    );
    const transaction = await feePayer.sign(allowed, spending());
    expect(transaction.fee).toBe(5_000n);
    const signed = VersionedTransaction.deserialize(Buffer.from(transaction.base64, "base64"));
    expect(signed.signatures).toHaveLength(1);
    const signedByLibrary = new VersionedTransaction(allowed);
    signedByLibrary.sign([keypair]);
    expect(Buffer.from(signed.signatures[0]!)).toEqual(Buffer.from(signedByLibrary.signatures[0]!));
  });

  it("reserves nothing for a message that cannot be serialized", async () => {
    const poor = createFeePayer({
      keypair,
      programIds: [programId.toBase58()],
      maxPriorityFee: toLamports(0),
      budget: budget(5_000),
    });
    const good = message(keypair.publicKey, limit(1), call(programId));
    const bad = message(keypair.publicKey, limit(1), call(programId));
    bad.recentBlockhash = "1".repeat(31);
    await expect(poor.sign(bad, spending())).rejects.toMatchObject({
      name: "RpcError",
      failure: "unreadable",
    });
    expect(await poor.sign(good, spending())).toBeDefined();
  });

  it("computes a transaction's fee as 5,000 lamports plus the price of its unit limit, rounded up", async () => {
    const priced = message(keypair.publicKey, limit(10_001), price(99_990n), call(programId));
    expect((await feePayer.sign(priced, spending())).fee).toBe(6_000n);
  });

  it.each([
    ["a call to another program", message(keypair.publicKey, limit(1), call(other))],
    [
      "a transfer from the fee payer",
      message(
        keypair.publicKey,
        limit(1),
        SystemProgram.transfer({ fromPubkey: keypair.publicKey, toPubkey: other, lamports: 1 }),
      ),
    ],
    [
      "a call with the fee payer among its accounts",
      message(
        keypair.publicKey,
        limit(1),
        call(programId, { pubkey: keypair.publicKey, isSigner: false, isWritable: true }),
      ),
    ],
    ["a transaction with another fee payer", message(other, limit(1), call(programId))],
    [
      "a transaction with a second signer",
      message(
        keypair.publicKey,
        limit(1),
        call(programId, { pubkey: other, isSigner: true, isWritable: false }),
      ),
    ],
    [
      "a priority fee above the cap",
      message(keypair.publicKey, limit(10_001), price(100_000n), call(programId)),
    ],
    ["a unit price without a unit limit", message(keypair.publicKey, price(1n), call(programId))],
    [
      "a request for a larger heap",
      message(keypair.publicKey, limit(1), ComputeBudgetProgram.requestHeapFrame({ bytes: 65_536 })),
    ],
  ])("refuses %s", async (_name, rejected) => {
    await expect(feePayer.sign(rejected, spending())).rejects.toThrow("refused to sign");
  });

  it("stays within its budget in any hour, and does not count released fees", async () => {
    vi.useFakeTimers();
    const limited = createFeePayer({
      keypair,
      programIds: [programId.toBase58()],
      maxPriorityFee: toLamports(1_000_000),
      budget: budget(20_000),
    });
    const sign = (fee: number) =>
      limited.sign(
        message(keypair.publicKey, limit(1_000_000), price(BigInt(fee - 5_000)), call(programId)),
        spending(),
      );
    const refused = { failure: { kind: "budget-spent" } };
    const first = await sign(15_000);
    expect(first.fee).toBe(15_000n);
    await expect(sign(5_001)).rejects.toMatchObject(refused);
    first.close({ refund: true });
    expect(await sign(20_000)).toBeDefined();
    await expect(sign(5_000)).rejects.toMatchObject(refused);
    vi.advanceTimersByTime(3_599_999);
    await expect(sign(5_000)).rejects.toMatchObject(refused);
    vi.advanceTimersByTime(60_001);
    expect(await sign(20_000)).toBeDefined();
  });
});

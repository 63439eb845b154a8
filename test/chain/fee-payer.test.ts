import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createFeePayer } from "../../src/chain/fee-payer.ts";
import { toLamports } from "../../src/chain/lamports.ts";

const keypair = Keypair.generate();
const programId = Keypair.generate().publicKey;
const feePayer = createFeePayer({
  keypair,
  programIds: [programId.toBase58()],
  budgetLamportsPerHour: toLamports(20_000),
});
const other = Keypair.generate().publicKey;
const call = (
  program: PublicKey,
  ...accounts: { pubkey: PublicKey; isSigner: boolean; isWritable: boolean }[]
) => new TransactionInstruction({ programId: program, keys: accounts, data: Buffer.alloc(8) });
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
  it("signs calls of the expected programs", async () => {
    const harmless = message(
      keypair.publicKey,
      ComputeBudgetProgram.setComputeUnitLimit({ units: 1 }),
      call(programId, { pubkey: other, isSigner: false, isWritable: true }),
    );
    const { base64 } = await feePayer.sign(harmless);
    const signed = VersionedTransaction.deserialize(Buffer.from(base64, "base64"));
    expect(signed.signatures).toHaveLength(1);
    expect(signed.signatures[0]!.some((byte) => byte !== 0)).toBe(true);
  });

  it.each([
    ["a call of another program", message(keypair.publicKey, call(other))],
    [
      "a transfer of its own money",
      message(
        keypair.publicKey,
        SystemProgram.transfer({ fromPubkey: keypair.publicKey, toPubkey: other, lamports: 1 }),
      ),
    ],
    [
      "a call that it is an account of",
      message(
        keypair.publicKey,
        call(programId, { pubkey: keypair.publicKey, isSigner: false, isWritable: true }),
      ),
    ],
    ["a transaction that another pays for", message(other, call(programId))],
    [
      "a transaction that another signs too",
      message(keypair.publicKey, call(programId, { pubkey: other, isSigner: true, isWritable: false })),
    ],
  ])("refuses %s", async (_name, harmful) => {
    await expect(feePayer.sign(harmful)).rejects.toThrow("refused to sign");
  });

  it("spends no more than its budget in any hour, and counts what was really paid", () => {
    vi.useFakeTimers();
    const thrifty = createFeePayer({ keypair, programIds: [], budgetLamportsPerHour: toLamports(20_000) });
    const first = thrifty.reserve(toLamports(15_000))!;
    expect(thrifty.reserve(toLamports(5_001))).toBeUndefined();
    first.settle(toLamports(5_000));
    expect(thrifty.reserve(toLamports(15_000))).toBeDefined();
    expect(thrifty.reserve(toLamports(1))).toBeUndefined();
    vi.advanceTimersByTime(3_600_000);
    expect(thrifty.reserve(toLamports(20_000))).toBeDefined();
  });
});

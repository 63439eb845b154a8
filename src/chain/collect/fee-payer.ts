import { createPrivateKey, sign, type KeyObject } from "node:crypto";
import { getBase58Decoder } from "@solana/codecs-strings";
import { ComputeBudgetProgram, VersionedTransaction, type Keypair, type Message } from "@solana/web3.js";
import { toLamports, type Lamports } from "../lamports.ts";
import type { FeeBudget, Reservation } from "./fee-budget.ts";
import { priorityFee } from "../priority-fee.ts";

/** The fee of one signature, without any priority fee. Source: the chain's fee structure, unchanged since launch. */
export const BASE_FEE_LAMPORTS = 5_000n;
/** The log warns the operator when the fee payer can pay for fewer collects than this. */
export const FEW_COLLECTS = 100n;

// The first byte of the compute budget program's instructions.
const SET_COMPUTE_UNIT_LIMIT = 2;
const SET_COMPUTE_UNIT_PRICE = 3;

/** A transaction that is ready to send. */
export interface SignedTransaction {
  readonly base64: string;
  readonly signature: string;
  /** The most it can cost, whether it succeeds or fails. */
  readonly fee: Lamports;
  /** The reservation of `fee` in the budget. */
  readonly reservation: Reservation;
}

export type FeePayer = ReturnType<typeof createFeePayer>;

/**
 * The only holder of the fee payer's key, and of the budget that all its transactions share. Signs a message
 * only if it calls no programs other than `programIds` and the compute budget program, no instruction uses the
 * fee payer's account, and the priority fee is at most `maxPriorityFee`.
 */
export function createFeePayer(needs: {
  keypair: Keypair;
  programIds: readonly string[];
  maxPriorityFee: Lamports;
  budget: FeeBudget;
}) {
  const { keypair, maxPriorityFee, budget } = needs;
  const key = toPrivateKey(keypair);
  const computeBudget = ComputeBudgetProgram.programId.toBase58();
  const allowedPrograms = new Set([...needs.programIds, computeBudget]);

  /** The fee of a message that is safe to sign; throws for any other. */
  function assertSafeToSign(message: Message): Lamports {
    const [payer] = message.accountKeys;
    if (!payer?.equals(keypair.publicKey) || message.header.numRequiredSignatures !== 1) {
      throw new Error("refused to sign: the fee payer must be the only signer");
    }
    let unitLimit: number | undefined;
    let price = 0n;
    for (const { programId, accountKeyIndexes, data } of message.compiledInstructions.map(withProgramId)) {
      if (!allowedPrograms.has(programId)) throw new Error(`refused to sign: the message calls ${programId}`);
      if (accountKeyIndexes.includes(0)) {
        throw new Error(`refused to sign: the fee payer is an account of an instruction of ${programId}`);
      }
      if (programId !== computeBudget) continue;
      if (data[0] === SET_COMPUTE_UNIT_LIMIT) unitLimit = Buffer.from(data).readUInt32LE(1);
      else if (data[0] === SET_COMPUTE_UNIT_PRICE) price = Buffer.from(data).readBigUInt64LE(1);
      else throw new Error("refused to sign: an unknown instruction of the compute budget program");
    }
    if (unitLimit === undefined) throw new Error("refused to sign: no compute-unit limit is set");
    const priority = priorityFee(price, unitLimit);
    if (priority > maxPriorityFee) {
      throw new Error(
        `refused to sign: a priority fee of ${priority} lamports is above the cap of ${maxPriorityFee}`,
      );
    }
    return toLamports(BASE_FEE_LAMPORTS + priority);

    function withProgramId(instruction: Message["compiledInstructions"][number]) {
      return {
        ...instruction,
        programId: message.accountKeys[instruction.programIdIndex]?.toBase58() ?? "unknown",
      };
    }
  }

  return {
    publicKey: keypair.publicKey,

    /**
     * Reserves the message's fee in the budget, then signs it; undefined when the fee exceeds the rest of the
     * budget. Throws when the message is not safe to sign.
     */
    async sign(message: Message): Promise<SignedTransaction | undefined> {
      const fee = assertSafeToSign(message);
      // Serialize before reserving the fee, because this throws for an invalid blockhash.
      const bytes = message.serialize();
      const reservation = await budget.reserve(fee);
      if (!reservation) return undefined;
      const transaction = new VersionedTransaction(message);
      transaction.addSignature(keypair.publicKey, sign(null, bytes, key));
      return {
        base64: Buffer.from(transaction.serialize()).toString("base64"),
        signature: getBase58Decoder().decode(transaction.signatures[0]!),
        fee,
        reservation,
      };
    },
  };
}

/** The key for node:crypto, which signs about twenty times as fast as web3.js. */
function toPrivateKey({ secretKey, publicKey }: Keypair): KeyObject {
  const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");
  const jwk = {
    kty: "OKP",
    crv: "Ed25519",
    d: base64url(secretKey.subarray(0, 32)),
    x: base64url(publicKey.toBytes()),
  };
  return createPrivateKey({ key: jwk, format: "jwk" });
}

import { createPrivateKey, sign, type KeyObject } from "node:crypto";
import { getBase58Decoder } from "@solana/codecs-strings";
import { ComputeBudgetProgram, VersionedTransaction, type Keypair, type Message } from "@solana/web3.js";
import { toLamports, type Lamports } from "../lamports.ts";
import { CollectError } from "../collect-error.ts";
import { RpcError } from "../rpc/rpc-error.ts";
import type { FeeBudget, Payers } from "./fee-budget.ts";
import { BASE_FEE_LAMPORTS, priorityFee } from "../priority-fee.ts";

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
  /**
   * Call once: when it is certain that it will not be sent, or when its outcome is known. Until then the fee payer
   * keeps `fee` for it. With `refund` the fee also returns to the budget: only if it was never sent, or never landed.
   */
  close(options: { refund: boolean }): void;
}

export type FeePayer = ReturnType<typeof createFeePayer>;

/**
 * The only holder of the fee payer's key, and of the budget that all its transactions share. Signs a message
 * only if it calls no programs other than `programIds` and the compute budget program, no instruction uses the
 * fee payer's account, the priority fee is at most `maxPriorityFee`, and the fee payer can pay for it besides the
 * transactions in flight.
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
  /** The fees of the transactions in flight, which the fee payer has not paid yet. */
  let openFees = 0n;

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
     * Reserves the message's fee in the budget, then signs it. `spendable`: the lamports that the fee payer may still
     * spend after this fee; undefined when unknown. `moved`: the lamports that the message moves. Throws
     * {@link CollectError} `budget-spent`, or `fee-payer-short` when `spendable` does not cover the transactions in
     * flight, {@link RpcError} when the chain's blockhash is invalid, and any other error when the message is not safe
     * to sign.
     */
    async sign(
      message: Message,
      { spendable, ...spending }: { spendable: bigint | undefined; moved: Lamports; payers: Payers },
    ): Promise<SignedTransaction> {
      const fee = assertSafeToSign(message);
      const bytes = serialize(message);
      // No await between this check and the addition, so that concurrent collects cannot pass together.
      if (spendable !== undefined && spendable < openFees) {
        const detail = "its balance does not cover this transaction besides those in flight";
        throw new CollectError({ kind: "fee-payer-short", detail });
      }
      openFees += fee;
      const reservation = await budget.reserve(fee, spending).catch((error: unknown) => {
        openFees -= fee;
        throw error;
      });
      const transaction = new VersionedTransaction(message);
      transaction.addSignature(keypair.publicKey, sign(null, bytes, key));
      return {
        base64: Buffer.from(transaction.serialize()).toString("base64"),
        signature: getBase58Decoder().decode(transaction.signatures[0]!),
        fee,
        close({ refund }) {
          openFees -= fee;
          if (refund) reservation.release(fee);
        },
      };
    },
  };
}

function serialize(message: Message): Uint8Array {
  try {
    return message.serialize();
  } catch (cause) {
    // Only the blockhash comes from outside.
    throw new RpcError("unreadable", "getLatestBlockhash", "", { cause });
  }
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

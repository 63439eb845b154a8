import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import type { TransactionInstruction } from "@solana/web3.js";
import type { TransactionError } from "../../chain/rpc/rpc-results.ts";
import type { Slots } from "./slots.ts";
import { decodeTransaction } from "./wire-transaction.ts";
import type { WireTransaction } from "./wire-transaction.ts";

/**
 * More than any of the faucet's transactions needs. The limit is free: the faucet sets no price.
 */
const COMPUTE_UNIT_LIMIT = 200_000;

/** Creates an account that pays for the sandbox's own transactions; the chain funds it. */
export function createFaucet(needs: {
  latestBlockhash: Slots["latestBlockhash"];
  send: (transaction: WireTransaction) => TransactionError | null;
}) {
  const keypair = Keypair.generate();
  let sentCount = 0;

  /**
   * Signs and sends a transaction, with the faucet as its fee payer; returns the signature. Throws
   * if it fails.
   */
  function sendFromFaucet(
    instructionsFor: (faucet: PublicKey) => readonly TransactionInstruction[],
  ): string {
    const transaction = new Transaction({
      feePayer: keypair.publicKey,
      ...needs.latestBlockhash("processed"),
    }).add(
      // Vary the limit: otherwise two equal transfers in one slot would be the same transaction.
      ComputeBudgetProgram.setComputeUnitLimit({
        units: COMPUTE_UNIT_LIMIT + (sentCount++ % 1_000_000),
      }),
      ...instructionsFor(keypair.publicKey),
    );
    transaction.sign(keypair);
    const wire = decodeTransaction(transaction.serialize());
    const err = needs.send(wire);
    if (err) throw new Error(`The faucet's transaction failed: ${JSON.stringify(err)}`);
    return wire.signature;
  }

  return {
    /** In base58. */
    address: keypair.publicKey.toBase58(),
    sendFromFaucet,
    /** Transfers lamports from the faucet to an address; returns the signature. */
    transfer(to: string, lamports: bigint): string {
      const toPubkey = new PublicKey(to);
      return sendFromFaucet((fromPubkey) => [
        SystemProgram.transfer({ fromPubkey, toPubkey, lamports }),
      ]);
    },
  };
}

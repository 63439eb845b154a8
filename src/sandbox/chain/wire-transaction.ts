import { getBase58Decoder, getTransactionDecoder } from "@solana/kit";
import type { Transaction } from "@solana/kit";
import { VersionedTransaction } from "@solana/web3.js";
import type { MessageCompiledInstruction, MessageHeader, MessageV1 } from "@solana/web3.js";

/** A decoded transaction. Signatures may be missing or invalid: `Chain.send` checks them. */
export interface WireTransaction {
  /** The form that LiteSVM accepts. */
  readonly decoded: Transaction;
  /** All accounts of the supported versions are static. */
  readonly message: {
    readonly version: "legacy" | 1;
    readonly header: MessageHeader;
    /** In base58, like `lifetimeToken`, the blockhash. */
    readonly staticAccounts: readonly string[];
    readonly lifetimeToken: string;
    /** Of version 1. */
    readonly transactionConfig: MessageV1["transactionConfig"] | undefined;
    readonly instructions: readonly MessageCompiledInstruction[];
  };
  /** In base58, in the order of the signers. */
  readonly signatures: readonly string[];
  /** The first signature, which identifies the transaction. */
  readonly signature: string;
}

/** Sources: https://solana.com/docs/core/transactions#transaction-size, SIMD-0385. */
const MAX_TRANSACTION_BYTES = { legacy: 1232, 1: 4096 };

const base58 = getBase58Decoder();

/** Decodes a transaction. Throws an Error with the reason if the sandbox does not support it. */
export function decodeTransaction(bytes: Uint8Array): WireTransaction {
  const transaction = VersionedTransaction.deserialize(bytes);
  const { message } = transaction;
  const { version, header, staticAccountKeys, recentBlockhash, compiledInstructions } = message;
  if (version === 0) throw new Error("transactions with lookup tables are not supported");
  const maxBytes = MAX_TRANSACTION_BYTES[version];
  if (bytes.length > maxBytes)
    throw new Error(`transaction too large: ${bytes.length} bytes (max: ${maxBytes} bytes)`);
  const signatures = transaction.signatures.map((signature) => base58.decode(signature));
  return {
    decoded: getTransactionDecoder().decode(bytes),
    message: {
      version,
      header,
      staticAccounts: staticAccountKeys.map((key) => key.toBase58()),
      lifetimeToken: recentBlockhash,
      transactionConfig: message.version === 1 ? message.transactionConfig : undefined,
      instructions: compiledInstructions,
    },
    signatures,
    signature: signatures[0]!,
  };
}

import { getBase58Decoder } from "@solana/codecs-strings";
import { VersionedTransaction } from "@solana/web3.js";

/** A decoded transaction. Signatures may be missing or invalid: `Chain.send` checks them. */
export type WireTransaction = ReturnType<typeof decodeTransaction>;

/** Sources: https://solana.com/docs/core/transactions#transaction-size, SIMD-0385. */
const MAX_TRANSACTION_BYTES = { legacy: 1232, 1: 4096 };
/** The most accounts that a transaction may name on mainnet, which is to allow 96 (SIMD-0596). */
const MAX_ACCOUNTS = 64;

const base58 = getBase58Decoder();

/** Decodes a transaction. Throws an Error with the reason if the sandbox does not support it. */
export function decodeTransaction(bytes: Uint8Array) {
  const transaction = VersionedTransaction.deserialize(bytes);
  const { message } = transaction;
  const { version, header, staticAccountKeys, recentBlockhash, compiledInstructions } = message;
  if (version === 0) throw new Error("transactions with lookup tables are not supported");
  const maxBytes = MAX_TRANSACTION_BYTES[version];
  if (bytes.length > maxBytes)
    throw new Error(`transaction too large: ${bytes.length} bytes (max: ${maxBytes} bytes)`);
  if (staticAccountKeys.length > MAX_ACCOUNTS) throw new Error("too many accounts");
  /** In base58, in the order of the signers. */
  const signatures = transaction.signatures.map((signature) => base58.decode(signature));
  return {
    /** Legacy ones are encoded again, because LiteSVM ends the process if bytes are missing. */
    bytes: version === 1 ? bytes : transaction.serialize(),
    version,
    /** As `getTransaction` returns it. */
    message: {
      header,
      /** All of the message's: both versions have no others. */
      accountKeys: staticAccountKeys.map((key) => key.toBase58()),
      recentBlockhash,
      transactionConfig: message.version === 1 ? message.transactionConfig : undefined,
      instructions: compiledInstructions.map(({ programIdIndex, accountKeyIndexes, data }) =>
        toInstructionJson(programIdIndex, accountKeyIndexes, data),
      ),
    },
    signatures,
    /** The first signature, which identifies the transaction. */
    signature: signatures[0]!,
  };
}

/** An instruction as `getTransaction` returns it. The indexes are those of the message's accounts. */
export function toInstructionJson(
  programIdIndex: number,
  accounts: Iterable<number>,
  data: Uint8Array,
) {
  return { programIdIndex, accounts: [...accounts], data: base58.decode(data) };
}

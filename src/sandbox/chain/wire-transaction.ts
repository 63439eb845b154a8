import { createPublicKey, verify } from "node:crypto";
import {
  getAddressEncoder,
  getBase58Decoder,
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  getTransactionDecoder,
} from "@solana/kit";
import type {
  Address,
  CompiledTransactionMessage,
  CompiledTransactionMessageWithLifetime,
  Transaction,
} from "@solana/kit";

/** A legacy message, the only version the sandbox supports. All its accounts are static. */
type LegacyMessage = Extract<CompiledTransactionMessage, { version: "legacy" }> &
  CompiledTransactionMessageWithLifetime;

/** A transaction in its wire format, and decoded. Its signatures may be missing or invalid: see `isSigned`. */
export interface WireTransaction {
  readonly bytes: Uint8Array;
  /** The form that LiteSVM accepts. */
  readonly decoded: Transaction;
  readonly message: LegacyMessage;
  /** In base58, in the order of the signers. */
  readonly signatures: readonly string[];
  /** The first signature, which identifies the transaction. */
  readonly signature: string;
}

/** https://solana.com/docs/core/transactions#transaction-size */
const MAX_TRANSACTION_BYTES = 1232;
const SIGNATURE_BYTES = 64;

const base58 = getBase58Decoder();
const messageDecoder = getCompiledTransactionMessageDecoder();
const messageEncoder = getCompiledTransactionMessageEncoder();

/** Throws an Error with the reason if `bytes` are not a legacy transaction. */
export function decodeTransaction(bytes: Uint8Array): WireTransaction {
  if (bytes.length > MAX_TRANSACTION_BYTES) {
    throw new Error(`transaction too large: ${bytes.length} bytes (max: ${MAX_TRANSACTION_BYTES} bytes)`);
  }
  const signatureCount = bytes[0] ?? 0;
  const message = decodeMessage(bytes.subarray(1 + signatureCount * SIGNATURE_BYTES));
  if (signatureCount === 0 || signatureCount !== message.header.numSignerAccounts) {
    throw new Error("the transaction must have one signature per signer");
  }
  const signatures = signersOf(message).map((_, index) => base58.decode(signatureAt(bytes, index)));
  return {
    bytes,
    decoded: getTransactionDecoder().decode(bytes),
    message,
    signatures,
    signature: signatures[0]!,
  };
}

function decodeMessage(bytes: Uint8Array): LegacyMessage {
  const message = messageDecoder.decode(bytes);
  if (message.version !== "legacy") throw new Error("only legacy transactions are supported");
  if (messageEncoder.encode(message).length !== bytes.length) throw new Error("trailing bytes");
  return message;
}

/** Whether every signer's signature is valid. */
export function isSigned({ bytes, message }: WireTransaction): boolean {
  const signers = signersOf(message);
  const messageBytes = bytes.subarray(1 + signers.length * SIGNATURE_BYTES);
  return signers.every((signer, index) => {
    const x = Buffer.from(getAddressEncoder().encode(signer)).toString("base64url");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    return verify(null, messageBytes, key, signatureAt(bytes, index));
  });
}

function signersOf(message: LegacyMessage): Address[] {
  return message.staticAccounts.slice(0, message.header.numSignerAccounts);
}

function signatureAt(bytes: Uint8Array, index: number): Uint8Array {
  return bytes.subarray(1 + index * SIGNATURE_BYTES, 1 + (index + 1) * SIGNATURE_BYTES);
}

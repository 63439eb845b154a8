import { createPublicKey, verify } from "node:crypto";
import {
  getAddressEncoder,
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
import { toBase58 } from "./base58.ts";

/** A message of the two versions that the sandbox's chain takes. All its accounts are static. */
export type Message = Exclude<CompiledTransactionMessage, { version: 1 }> &
  CompiledTransactionMessageWithLifetime;

/** A transaction as it came over the wire, and what is in it. */
export interface WireTransaction {
  readonly bytes: Uint8Array;
  /** The form that LiteSVM takes. */
  readonly decoded: Transaction;
  readonly message: Message;
  /** In base58, in the order of the signers; whether they are valid is another question. */
  readonly signatures: readonly string[];
  /** The first of them, which names the transaction. */
  readonly signature: string;
}

/** https://solana.com/docs/core/transactions#transaction-size */
const MAX_TRANSACTION_BYTES = 1232;
const SIGNATURE_BYTES = 64;

/** Throws an Error that says what is wrong with bytes that are no transaction. */
export function decodeTransaction(bytes: Uint8Array): WireTransaction {
  if (bytes.length > MAX_TRANSACTION_BYTES) {
    throw new Error(`transaction too large: ${bytes.length} bytes (max: ${MAX_TRANSACTION_BYTES} bytes)`);
  }
  const messageBytes = bytes.subarray(1 + (bytes[0] ?? 0) * SIGNATURE_BYTES);
  const message = decodeMessage(messageBytes);
  if (!bytes[0] || bytes[0] !== message.header.numSignerAccounts)
    throw new Error("not one signature for each signer");
  const signatures = signersOf(message).map((_, index) => toBase58(signatureAt(bytes, index)));
  return {
    bytes,
    decoded: getTransactionDecoder().decode(bytes),
    message,
    signatures,
    signature: signatures[0]!,
  };
}

/** Throws an Error that says what is wrong with bytes that are no message, or one of a kind not supported. */
export function decodeMessage(bytes: Uint8Array): Message {
  const message = messageDecoder.decode(bytes);
  if (message.version === 1) throw new Error("transaction version 1 is not supported");
  if (message.version === 0 && message.addressTableLookups?.length) {
    throw new Error("address lookup tables are not supported");
  }
  if (messageEncoder.encode(message).length !== bytes.length) throw new Error("bytes are left over");
  return message;
}

const messageDecoder = getCompiledTransactionMessageDecoder();
const messageEncoder = getCompiledTransactionMessageEncoder();

/** The same transaction, unsigned, with another blockhash. */
export function withBlockhash({ message }: WireTransaction, blockhash: string): WireTransaction {
  const signers = message.header.numSignerAccounts;
  const replaced = messageEncoder.encode({ ...message, lifetimeToken: blockhash });
  const bytes = new Uint8Array(1 + signers * SIGNATURE_BYTES + replaced.length);
  bytes[0] = signers;
  bytes.set(replaced, bytes.length - replaced.length);
  return decodeTransaction(bytes);
}

/** Whether every signer has signed. */
export function isSigned({ bytes, message }: WireTransaction): boolean {
  const signers = signersOf(message);
  const messageBytes = bytes.subarray(1 + signers.length * SIGNATURE_BYTES);
  return signers.every((signer, index) => {
    const x = Buffer.from(getAddressEncoder().encode(signer)).toString("base64url");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    return verify(null, messageBytes, key, signatureAt(bytes, index));
  });
}

function signersOf(message: Message): Address[] {
  return message.staticAccounts.slice(0, message.header.numSignerAccounts);
}

function signatureAt(bytes: Uint8Array, index: number): Uint8Array {
  return bytes.subarray(1 + index * SIGNATURE_BYTES, 1 + (index + 1) * SIGNATURE_BYTES);
}

const LAMPORTS_PER_SIGNATURE = 5000n;
const MAX_UNITS = 1_400_000n;
const COMPUTE_BUDGET = "ComputeBudget111111111111111111111111111111";
const SYSTEM = "11111111111111111111111111111111";

/**
 * The fee in lamports: 5,000 a signature, and the price (micro-lamports a unit) times the units *asked for*,
 * rounded up. Where no limit is set, an instruction of these two built-in programs asks for 3,000 units and
 * any other for 200,000. https://solana.com/docs/core/fees
 */
export function feeOf(message: Message): bigint {
  let price = 0n;
  let limit: bigint | undefined;
  let unlimited = 0n;
  for (const { programAddressIndex, data } of message.instructions) {
    const program = message.staticAccounts[programAddressIndex];
    unlimited += program === COMPUTE_BUDGET || program === SYSTEM ? 3_000n : 200_000n;
    if (program !== COMPUTE_BUDGET || !data) continue;
    const bytes = Buffer.from(data);
    if (bytes[0] === 2 && bytes.length === 5) limit = BigInt(bytes.readUInt32LE(1));
    if (bytes[0] === 3 && bytes.length === 9) price = bytes.readBigUInt64LE(1);
  }
  limit ??= unlimited;
  if (limit > MAX_UNITS) limit = MAX_UNITS;
  return (
    LAMPORTS_PER_SIGNATURE * BigInt(message.header.numSignerAccounts) +
    (price * limit + 999_999n) / 1_000_000n
  );
}

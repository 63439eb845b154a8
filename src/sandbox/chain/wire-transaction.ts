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

/** A message of a version that the sandbox supports. All its accounts are static. */
type SupportedMessage = Exclude<CompiledTransactionMessage, { version: 0 }> &
  CompiledTransactionMessageWithLifetime;
type Version1Message = Extract<SupportedMessage, { version: 1 }>;
type LegacyMessage = Extract<SupportedMessage, { version: "legacy" }>;

/** What messages of both versions have. */
interface WireMessage extends Pick<
  SupportedMessage,
  "version" | "header" | "staticAccounts" | "lifetimeToken"
> {
  readonly instructions: LegacyMessage["instructions"];
  /** Undefined for a legacy message. */
  readonly config: Pick<Version1Message, "configMask" | "configValues"> | undefined;
}

/**
 * A transaction, both in wire format and decoded. Signatures may be missing or invalid: see
 * `isSigned`.
 */
export interface WireTransaction {
  readonly bytes: Uint8Array;
  /** The form that LiteSVM accepts. */
  readonly decoded: Transaction;
  readonly message: WireMessage;
  /** In base58, in the order of the signers. */
  readonly signatures: readonly string[];
  /** The first signature, which identifies the transaction. */
  readonly signature: string;
}

/** Sources: https://solana.com/docs/core/transactions#transaction-size, SIMD-0385. */
const MAX_TRANSACTION_BYTES = { legacy: 1232, 1: 4096 };
const NO_SIGNATURE = new Uint8Array(64);

const base58 = getBase58Decoder();
const messageDecoder = getCompiledTransactionMessageDecoder();
const messageEncoder = getCompiledTransactionMessageEncoder();

/** Decodes a transaction. Throws an Error with the reason if the sandbox does not support it. */
export function decodeTransaction(bytes: Uint8Array): WireTransaction {
  const decodedTransaction = getTransactionDecoder().decode(bytes);
  const message = decodeMessage(Uint8Array.from(decodedTransaction.messageBytes));
  const maxBytes = MAX_TRANSACTION_BYTES[message.version];
  if (bytes.length > maxBytes) {
    throw new Error(`transaction too large: ${bytes.length} bytes (max: ${maxBytes} bytes)`);
  }
  const signers = signersOf(message);
  const signatures = signers.map((signer) =>
    base58.decode(decodedTransaction.signatures[signer] ?? NO_SIGNATURE),
  );
  const [signature] = signatures;
  if (signature === undefined) throw new Error("the transaction must have a signer");
  return { bytes, decoded: decodedTransaction, message, signatures, signature };
}

function decodeMessage(bytes: Uint8Array): WireMessage {
  const message = messageDecoder.decode(bytes);
  if (message.version === 0) throw new Error("transactions with lookup tables are not supported");
  if (messageEncoder.encode(message).length !== bytes.length) throw new Error("trailing bytes");
  const { version, header, staticAccounts, lifetimeToken } = message;
  return {
    ...{ version, header, staticAccounts, lifetimeToken },
    config: version === 1 ? message : undefined,
    instructions:
      version === 1
        ? message.instructionPayloads.map(({ instructionAccountIndices, instructionData }, i) => ({
            programAddressIndex: message.instructionHeaders[i]!.programAccountIndex,
            accountIndices: instructionAccountIndices,
            data: instructionData,
          }))
        : message.instructions,
  };
}

/** Whether every signer's signature is valid. */
export function isSigned({ decoded: decodedTransaction, message }: WireTransaction): boolean {
  return signersOf(message).every((signer) => {
    const x = Buffer.from(getAddressEncoder().encode(signer)).toString("base64url");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    const signature = decodedTransaction.signatures[signer] ?? NO_SIGNATURE;
    return verify(null, Uint8Array.from(decodedTransaction.messageBytes), key, signature);
  });
}

function signersOf({ staticAccounts, header }: WireMessage): Address[] {
  return staticAccounts.slice(0, header.numSignerAccounts);
}

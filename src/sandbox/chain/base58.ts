import { getBase58Decoder, getBase58Encoder } from "@solana/kit";

export function toBase58(bytes: Uint8Array): string {
  return getBase58Decoder().decode(bytes);
}

/** Throws for text that is not base58. */
export function fromBase58(text: string): Uint8Array {
  return Uint8Array.from(getBase58Encoder().encode(text));
}

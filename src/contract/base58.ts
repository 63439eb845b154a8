import { getBase58Encoder } from "@solana/codecs-strings";

const encoder = getBase58Encoder();

/**
 * Whether a text is `bytes` bytes in base58: 32 for an address, 64 for a signature. No value has
 * two spellings.
 */
export function isBase58(text: string, bytes: number): boolean {
  // This check comes first, because the time to decode a text grows with the square of its length.
  const isShort = text.length <= Math.ceil(bytes * 1.4);
  return isShort && /^[1-9A-HJ-NP-Za-km-z]+$/.test(text) && encoder.encode(text).length === bytes;
}

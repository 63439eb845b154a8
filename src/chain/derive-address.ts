import { getBase58Decoder } from "@solana/codecs-strings";
import { PublicKey } from "@solana/web3.js";

const base58 = getBase58Decoder();

/** The program-derived address (PDA) of `program` for `seeds`; costs about 100 microseconds. */
export function deriveAddress(seeds: Buffer[], program: PublicKey): PublicKey {
  return PublicKey.findProgramAddressSync(seeds, program)[0];
}

/**
 * An address to keep, in base58. Not `key.toBase58()`, which appends one character at a time: V8 keeps such a string
 * as a tree of 1 kB.
 */
export function toAddress(key: PublicKey): string {
  return base58.decode(key.toBytes());
}

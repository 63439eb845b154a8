import { PublicKey } from "@solana/web3.js";

/** The program-derived address (PDA) of `program` for `seeds`; costs about 100 microseconds. */
export function deriveAddress(seeds: Buffer[], program: PublicKey): PublicKey {
  return PublicKey.findProgramAddressSync(seeds, program)[0];
}

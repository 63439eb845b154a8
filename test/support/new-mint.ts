import { PublicKey } from "@solana/web3.js";

/** A mint that no other coin of this process has. */
export const newMint = (): string => PublicKey.unique().toBase58();

/**
 * The commitment of all reads, and of a transaction that counts as landed. With Alpenglow, a block
 * is final about 150 ms after it was produced. `confirmed` now means the same, and is to be
 * removed. Source: https://solana.com/developers/docs/defi/finality
 */
export const FINALIZED = { commitment: "finalized" } as const;

import { getBase58Encoder } from "@solana/codecs-strings";
import { ContractError, quote } from "./contract-error.ts";

/** The most coins that one lookup, collect or field may name. */
export const MAX_MINTS = 10;
/** The most coins of one wallet. One call reads 100 accounts: five per coin, three for the wallet, and two sysvars. */
export const MAX_MINTS_PER_WALLET = 19;

/** Advice for callers who name no coins and find nothing to collect. */
export const NAME_COINS = `Fees may also wait on coins: name up to ${MAX_MINTS} by their mints, in \`mints\`.`;

/** The syntax of a mint in base58. {@link toMint} also checks that it is 32 bytes. */
export const MINT_PATTERN = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;

const MINT_BYTES = 32;
const base58 = getBase58Encoder();

/** Parses a mint: 32 bytes in base58, on or off the ed25519 curve. Each mint has only one spelling. */
export function toMint(text: string): string | undefined {
  return MINT_PATTERN.test(text) && base58.encode(text).length === MINT_BYTES ? text : undefined;
}

export function invalidMint(received: unknown): ContractError {
  const message = `A mint must be a Solana address: 32 bytes in base58. Received ${quote(received)}.`;
  return new ContractError("INVALID_MINT", { message });
}

export function tooManyMints(received: number, max = MAX_MINTS): ContractError {
  const where = max === MAX_MINTS ? "" : " for one wallet";
  const message = `At most ${max} mints are allowed${where}. Received ${received}.`;
  return new ContractError("INVALID_MINT", { message });
}

/** The mints that a request names, each once. Throws INVALID_MINT. */
export function toMints(texts: readonly string[]): string[] {
  if (texts.length > MAX_MINTS) throw tooManyMints(texts.length);
  const mints = texts.map((text) => {
    const mint = toMint(text);
    if (mint === undefined) throw invalidMint(text);
    return mint;
  });
  return [...new Set(mints)];
}

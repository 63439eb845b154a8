import { isBase58 } from "./base58.ts";
import { ContractError, wrongValue } from "./contract-error.ts";

/** The most coins that one lookup, collect or field may name. */
export const MAX_MINTS = 10;
/**
 * The most coins named for a wallet. One call reads 100 accounts: five per coin, three for the
 * wallet, two sysvars.
 */
export const MAX_MINTS_PER_WALLET = 19;

/** Advice for callers who name no coins and find nothing to collect. */
export const NAME_COINS = `Fees may also wait on coins: name up to ${MAX_MINTS} by their mints, in \`mints\`.`;

/** Only the length is checked: a mint may be on or off the ed25519 curve. */
const MINT_BYTES = 32;

export function invalidMint(value: unknown): ContractError {
  return wrongValue("INVALID_MINT", "A mint must be a Solana address: 32 bytes in base58", value);
}

export function tooManyMints(count: number, max = MAX_MINTS): ContractError {
  const where = max === MAX_MINTS ? "" : " for one wallet";
  const message = `At most ${max} mints are allowed${where}. Received ${count}.`;
  return new ContractError("INVALID_MINT", { message });
}

/**
 * Refuses a name such as `mintAddress`: the caller means a coin, whose fees would be left out
 * without a word. Throws INVALID_MINT.
 */
export function assertMintNames(names: Iterable<string>, known: readonly string[]): void {
  for (const name of names) {
    if (!/^mint/i.test(name) || known.includes(name)) continue;
    const usage =
      known.length > 0 ? `Coins are named by ${known.join(" or ")}` : "No coins can be named here";
    throw wrongValue("INVALID_MINT", usage, name);
  }
}

/** The mints that a request names, each once. Throws INVALID_MINT. */
export function toMints(texts: readonly string[]): string[] {
  if (texts.length > MAX_MINTS) throw tooManyMints(texts.length);
  for (const text of texts) if (!isBase58(text, MINT_BYTES)) throw invalidMint(text);
  return [...new Set(texts)];
}

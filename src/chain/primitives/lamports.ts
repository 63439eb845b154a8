/** An amount in the chain's smallest unit, 10^-9 SOL. */
export type Lamports = bigint & { readonly __unit: "lamports" };

const DECIMALS = 9;
const SHOWN_DECIMALS = 4;

/**
 * Converts a number or bigint. Throws RangeError for an unsafe integer, which may have lost digits
 * in JSON.
 */
export function toLamports(amount: number | bigint): Lamports {
  if (typeof amount === "number" && !Number.isSafeInteger(amount)) {
    throw new RangeError(`expected lamports as a whole number below 2^53, got ${amount}`);
  }
  return BigInt(amount) as Lamports;
}

/** `a - b`, or 0 if negative. */
export function saturatingSubtract(a: Lamports, b: Lamports): Lamports {
  return toLamports(a > b ? a - b : 0n);
}

/** Formats as SOL with all decimals that are needed: 300_000_000 → "0.3". */
export const formatExactSol = (lamports: Lamports): string =>
  toDecimals(lamports).replace(/\.?0+$/, "");

/**
 * Formats as SOL with 4 decimals. Rounds down, to promise no more than the balance: 3_100_099_999 →
 * "3.1000".
 */
export function formatSol(lamports: Lamports): string {
  if (lamports < 0n)
    throw new RangeError(`expected lamports of 0 or more, got ${lamports.toString()}`);
  return toDecimals(lamports).slice(0, SHOWN_DECIMALS - DECIMALS);
}

/** All nine decimals of an amount in SOL. */
function toDecimals(lamports: Lamports): string {
  const digits = lamports.toString().padStart(1 + DECIMALS, "0");
  return `${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`;
}

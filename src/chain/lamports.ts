/** An amount in the chain's smallest unit, 10^-9 SOL. */
export type Lamports = bigint & { readonly __unit: "lamports" };

const LAMPORTS_PER_SOL = 1_000_000_000n;
/** One unit of the fourth digit after the point, the last digit that the contract shows. */
const LAMPORTS_PER_SHOWN_UNIT = 100_000n;

/**
 * Converts a whole JSON number, as JSON-RPC gives amounts, or a bigint. Throws RangeError for a number that
 * is not a safe integer: it has lost digits in JSON, and a wrong amount must never be shown.
 */
export function toLamports(amount: number | bigint): Lamports {
  if (typeof amount === "number" && !Number.isSafeInteger(amount)) {
    throw new RangeError(`expected lamports as a whole number below 2^53, got ${amount}`);
  }
  return BigInt(amount) as Lamports;
}

/** `a - b`, or 0 where that would be negative. */
export function subtractToZero(a: Lamports, b: Lamports): Lamports {
  return (a > b ? a - b : 0n) as Lamports;
}

/** The form of {@link formatSol}'s result. */
export const SOL_PATTERN = /^[0-9]+\.[0-9]{4}$/;

/**
 * SOL with exactly 4 digits after the point, cut and never rounded up, so that no answer promises more
 * than there is: 3_100_099_999 → "3.1000".
 */
export function formatSol(lamports: Lamports): string {
  if (lamports < 0n) throw new RangeError(`expected lamports of 0 or more, got ${lamports.toString()}`);
  const fraction = ((lamports % LAMPORTS_PER_SOL) / LAMPORTS_PER_SHOWN_UNIT).toString().padStart(4, "0");
  return `${(lamports / LAMPORTS_PER_SOL).toString()}.${fraction}`;
}

/** An amount of the chain's smallest unit, 10^-9 SOL. */
export type Lamports = bigint & { readonly __unit: "lamports" };

const LAMPORTS_PER_SOL = 1_000_000_000n;
/** One unit of the fourth digit after the point, the last one that the contract shows. */
const LAMPORTS_PER_SHOWN_UNIT = 100_000n;

/**
 * Takes an amount as JSON-RPC gives it, a whole JSON number, or one that is a bigint already. A number
 * that is not a safe integer has lost digits on the way and is refused: no wrong amount is ever shown.
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

/** What {@link formatSol} gives. */
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

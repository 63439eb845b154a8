import { toLamports, type Lamports } from "./lamports.ts";

export const RENT_SYSVAR = "SysvarRent111111111111111111111111111111111";

/** The rent-exempt minimum per byte, in lamports. */
export type Rent = number;

/**
 * The bytes that every account takes besides its data. Source: `ACCOUNT_STORAGE_OVERHEAD` of the
 * rent sysvar.
 */
const ACCOUNT_OVERHEAD_BYTES = 128;
/**
 * Limits of a credible rate, in lamports per byte. The rate was 6,960 until 2026 and is 5,080; 696
 * is proposed.
 */
const MIN_RATE = 500;
const MAX_RATE = 14_000;
/** The size of the sysvar: the rate a year (u64), its years (f64), and a u8 that is not used. */
const RENT_BYTES = 17;

/**
 * Decodes the rent sysvar; undefined for impossible data. Only a vote of the cluster changes the
 * rate.
 */
export function decodeRent(data: Buffer | undefined): Rent | undefined {
  if (!data || data.length < RENT_BYTES) return undefined;
  const rate = Number(data.readBigUInt64LE()) * data.readDoubleLE(8);
  return rate >= MIN_RATE && rate <= MAX_RATE ? rate : undefined;
}

export function rentMinimumOf(rate: Rent, dataBytes: number): Lamports {
  return toLamports(Math.floor((ACCOUNT_OVERHEAD_BYTES + dataBytes) * rate));
}

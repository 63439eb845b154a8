import { toLamports, type Lamports } from "./lamports.ts";

export const RENT_SYSVAR = "SysvarRent111111111111111111111111111111111";

/**
 * The cluster's rent rate. The product of both values is the rent-exempt minimum per byte, in
 * lamports.
 */
export interface Rent {
  readonly lamportsPerByteYear: number;
  readonly exemptionThreshold: number;
}

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
/** The size of the sysvar: a u64, an f64, and a u8 that is no longer used. */
const RENT_BYTES = 17;

/**
 * Decodes the rent sysvar; undefined for impossible data. Only a vote of the cluster changes the
 * rate.
 */
export function decodeRent(data: Buffer | undefined): Rent | undefined {
  if (!data || data.length < RENT_BYTES) return undefined;
  const lamportsPerByteYear = Number(data.readBigUInt64LE());
  const exemptionThreshold = data.readDoubleLE(8);
  const rate = lamportsPerByteYear * exemptionThreshold;
  return rate >= MIN_RATE && rate <= MAX_RATE
    ? { lamportsPerByteYear, exemptionThreshold }
    : undefined;
}

export function rentMinimumOf(
  { lamportsPerByteYear, exemptionThreshold }: Rent,
  dataBytes: number,
): Lamports {
  const perYear = (ACCOUNT_OVERHEAD_BYTES + dataBytes) * lamportsPerByteYear;
  return toLamports(Math.floor(perYear * exemptionThreshold));
}

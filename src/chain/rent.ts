import { toLamports, type Lamports } from "./lamports.ts";

/** The account in which the cluster keeps its price of storage. */
export const RENT_SYSVAR = "SysvarRent111111111111111111111111111111111";

/** The cluster's price of storage. The product of both is the lamports per byte of a rent-exempt account. */
export interface Rent {
  readonly lamportsPerByteYear: number;
  readonly exemptionThreshold: number;
}

/** Every account takes this many bytes besides its data. Source: `ACCOUNT_STORAGE_OVERHEAD` of Solana's rent sysvar. */
const ACCOUNT_OVERHEAD_BYTES = 128;
/** Lamports per byte. It was 6,960 until 2026, is 5,080, and 696 is proposed. Another rate is a wrong answer. */
const MIN_RATE = 500;
const MAX_RATE = 14_000;
/** A u64, an f64 and a u8 that is not used any more. */
const RENT_BYTES = 17;

/** Decodes the rent sysvar; undefined if its data cannot be true. The rate changes only by a vote of the cluster. */
export function decodeRent(data: Buffer | undefined): Rent | undefined {
  if (!data || data.length < RENT_BYTES) return undefined;
  const lamportsPerByteYear = Number(data.readBigUInt64LE());
  const exemptionThreshold = data.readDoubleLE(8);
  const rate = lamportsPerByteYear * exemptionThreshold;
  return rate >= MIN_RATE && rate <= MAX_RATE ? { lamportsPerByteYear, exemptionThreshold } : undefined;
}

/** The rent-exempt minimum of an account with `dataBytes` of data. */
export function rentMinimumOf(
  { lamportsPerByteYear, exemptionThreshold }: Rent,
  dataBytes: number,
): Lamports {
  const perYear = (ACCOUNT_OVERHEAD_BYTES + dataBytes) * lamportsPerByteYear;
  return toLamports(Math.floor(perYear * exemptionThreshold));
}

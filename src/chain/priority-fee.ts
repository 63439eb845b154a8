import type { Lamports } from "./lamports.ts";
import type { Rpc } from "./rpc/rpc-client.ts";

/** The fee of one signature, without any priority fee. Source: the chain's fee structure, unchanged since launch. */
export const BASE_FEE_LAMPORTS = 5_000n;

const MICRO_LAMPORTS_PER_LAMPORT = 1_000_000n;

/** The operator's settings for prices. */
export interface PricePolicy {
  /** The lowest price, in micro-lamports per compute unit. */
  readonly priorityFeeFloorMicrolamports: bigint;
  /** The price would have been enough in this percentage of the recent slots, 0 to 100. */
  readonly priorityFeePercentile: number;
  /** The most that one transaction may pay above the base fee. */
  readonly maxPriorityFeeLamports: Lamports;
}

/** The priority fee in lamports, rounded up: `price` micro-lamports for each unit of `unitLimit`, used or not. */
export function priorityFee(price: bigint, unitLimit: number): bigint {
  return (price * BigInt(unitLimit) + MICRO_LAMPORTS_PER_LAMPORT - 1n) / MICRO_LAMPORTS_PER_LAMPORT;
}

/**
 * The price, in micro-lamports per compute unit, at which a transaction that writes to `addresses` should land
 * soon, judging by recent slots. At least the floor, unless its fee for `unitLimit` units would exceed
 * `maxPriorityFeeLamports`. Never rejects: uses the floor when recent prices cannot be read.
 */
export async function choosePrice(
  rpc: Pick<Rpc, "getRecentPrices">,
  addresses: readonly string[],
  unitLimit: number,
  { priorityFeeFloorMicrolamports, priorityFeePercentile, maxPriorityFeeLamports }: PricePolicy,
): Promise<bigint> {
  const prices = await rpc.getRecentPrices(addresses).catch(() => []);
  const sorted = prices.toSorted((a, b) => a - b);
  const index = Math.min(Math.floor((sorted.length * priorityFeePercentile) / 100), sorted.length - 1);
  const recent = BigInt(sorted[index] ?? 0);
  const wanted = recent > priorityFeeFloorMicrolamports ? recent : priorityFeeFloorMicrolamports;
  const affordable = (maxPriorityFeeLamports * MICRO_LAMPORTS_PER_LAMPORT) / BigInt(unitLimit);
  return wanted < affordable ? wanted : affordable;
}

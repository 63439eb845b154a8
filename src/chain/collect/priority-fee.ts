import type { Lamports } from "../lamports.ts";
import type { Rpc } from "../rpc/rpc-client.ts";

const MICRO_LAMPORTS_PER_LAMPORT = 1_000_000n;
/** Of the recent slots, the part in which the price taken would have been enough. */
const PERCENTILE = 0.75;
/** In micro-lamports a compute unit: some lamports a collect, which put it before those who offer nothing. */
const FLOOR_PRICE = 1_000n;

/** What a priority costs: `price` micro-lamports for each of `unitLimit` compute units, used or not, rounded up. */
export function priorityFee(price: bigint, unitLimit: number): bigint {
  return (price * BigInt(unitLimit) + MICRO_LAMPORTS_PER_LAMPORT - 1n) / MICRO_LAMPORTS_PER_LAMPORT;
}

/**
 * The price, in micro-lamports a compute unit, that puts a transaction which writes to `addresses` into a
 * block soon, as the recent slots tell, with a floor; never so high that the whole fee for `unitLimit`
 * units would exceed `maxFee`. When the chain does not tell, the floor: a collect does not fail for it.
 */
export async function choosePrice(
  rpc: Rpc,
  addresses: readonly string[],
  unitLimit: number,
  maxFee: Lamports,
): Promise<bigint> {
  const prices = await rpc.getRecentPrices(addresses).catch(() => []);
  const sorted = prices.toSorted((a, b) => a - b);
  const recent = BigInt(sorted[Math.floor(sorted.length * PERCENTILE)] ?? 0);
  const wanted = recent > FLOOR_PRICE ? recent : FLOOR_PRICE;
  const affordable = (maxFee * MICRO_LAMPORTS_PER_LAMPORT) / BigInt(unitLimit);
  return wanted < affordable ? wanted : affordable;
}

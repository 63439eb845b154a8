import type { Lamports } from "../lamports.ts";
import type { Rpc } from "../rpc/rpc-client.ts";

const MICRO_LAMPORTS_PER_LAMPORT = 1_000_000n;
/** The chosen price would have been enough in this fraction of the recent slots. */
const PERCENTILE = 0.75;
/** In micro-lamports per compute unit: a few lamports per collect, to beat transactions without a priority fee. */
const FLOOR_PRICE = 1_000n;

/** The priority fee in lamports, rounded up: `price` micro-lamports for each unit of `unitLimit`, used or not. */
export function priorityFee(price: bigint, unitLimit: number): bigint {
  return (price * BigInt(unitLimit) + MICRO_LAMPORTS_PER_LAMPORT - 1n) / MICRO_LAMPORTS_PER_LAMPORT;
}

/**
 * The price in micro-lamports per compute unit that should land a transaction that writes to `addresses` soon,
 * based on recent slots. At least the floor, unless its fee for `unitLimit` units would exceed `maxFee`. Never
 * rejects: uses the floor when recent prices cannot be read.
 */
export async function choosePrice(
  rpc: Pick<Rpc, "getRecentPrices">,
  addresses: readonly string[],
  unitLimit: number,
  maxFee: Lamports,
): Promise<bigint> {
  const prices = await rpc.getRecentPrices(addresses).catch(() => []);
  const sorted = prices.toSorted((a, b) => a - b);
  const percentile = BigInt(sorted[Math.floor(sorted.length * PERCENTILE)] ?? 0);
  const wanted = percentile > FLOOR_PRICE ? percentile : FLOOR_PRICE;
  const affordable = (maxFee * MICRO_LAMPORTS_PER_LAMPORT) / BigInt(unitLimit);
  return wanted < affordable ? wanted : affordable;
}

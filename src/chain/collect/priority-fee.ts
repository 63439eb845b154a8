import type { Lamports } from "../lamports.ts";
import type { Rpc } from "../rpc/rpc-client.ts";

const MICRO_LAMPORTS_PER_LAMPORT = 1_000_000n;
/** The price would have been enough in this part of the recent slots. */
const PERCENTILE = 0.75;
/** In micro-lamports per compute unit: a few lamports a collect, to go ahead of transactions that offer nothing. */
const FLOOR_PRICE = 1_000n;

/** The fee in lamports for `price` micro-lamports per unit of `unitLimit`, used or not, rounded up. */
export function priorityFee(price: bigint, unitLimit: number): bigint {
  return (price * BigInt(unitLimit) + MICRO_LAMPORTS_PER_LAMPORT - 1n) / MICRO_LAMPORTS_PER_LAMPORT;
}

/**
 * The price in micro-lamports per compute unit that gets a transaction writing to `addresses` into a block
 * soon, going by the recent slots, with a floor; its fee for `unitLimit` units is at most `maxFee`. Never
 * rejects: the floor when the recent prices cannot be read.
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

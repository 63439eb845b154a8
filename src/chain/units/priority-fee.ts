import type { Lamports } from "../primitives/lamports.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { NoRoomError } from "../errors/no-room-error.ts";

/**
 * The fee of one signature, without any priority fee. Source: the chain's fee structure, unchanged
 * since launch.
 */
export const BASE_FEE_LAMPORTS = 5_000n;

/**
 * The lowest price per compute unit: a collect of 10,000 units pays 10 lamports besides the base
 * fee.
 */
const PRIORITY_FEE_FLOOR_MICROLAMPORTS = 1_000n;
/**
 * The chosen price was enough in 75% of recent slots: a collect waits for a few slots instead of
 * paying more.
 */
const PRIORITY_FEE_PERCENTILE = 75;

const MICRO_LAMPORTS_PER_LAMPORT = 1_000_000n;

/**
 * The priority fee in lamports, rounded up, but at most `maxLamports`: `price` micro-lamports for
 * each unit of `unitLimit`, used or not.
 */
export function priorityFeeOf(price: bigint, unitLimit: number, maxLamports: Lamports): bigint {
  const fee =
    (price * BigInt(unitLimit) + MICRO_LAMPORTS_PER_LAMPORT - 1n) / MICRO_LAMPORTS_PER_LAMPORT;
  return fee < maxLamports ? fee : maxLamports;
}

/**
 * Reads the price, in micro-lamports per compute unit, at which a transaction that writes to
 * `addresses` should land soon, judging by recent slots: at least the floor, also if recent prices
 * cannot be read. Throws {@link NoRoomError}.
 */
export async function readPrice(
  rpc: Pick<Rpc, "call" | "callEndpoint">,
  addresses: readonly string[],
): Promise<bigint> {
  const method = "getRecentPrioritizationFees";
  const fees = await rpc
    .call("reads", (endpoint, signal) => rpc.callEndpoint(endpoint, method, [addresses], signal))
    .catch((error: unknown) => {
      if (error instanceof NoRoomError) throw error;
      return [];
    });
  const prices = fees.map(({ prioritizationFee }) => prioritizationFee).toSorted((a, b) => a - b);
  const index = Math.floor((prices.length * PRIORITY_FEE_PERCENTILE) / 100);
  const recent = BigInt(prices[index] ?? 0);
  return recent > PRIORITY_FEE_FLOOR_MICROLAMPORTS ? recent : PRIORITY_FEE_FLOOR_MICROLAMPORTS;
}

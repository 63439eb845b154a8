import { formatSol, type Lamports } from "../primitives/lamports.ts";
import { BASE_FEE_LAMPORTS } from "../units/priority-fee.ts";

/** The log warns the operator when the fee payer can pay for fewer collects than this. */
const FEW_COLLECTS = 100n;

/**
 * Returns how many collects a fee payer (base58) can pay for, whether that is enough, and a text
 * for the log.
 */
export function describeBalance(
  feePayer: string,
  lamports: Lamports,
  { maxPriorityFeeLamports }: { maxPriorityFeeLamports: Lamports },
) {
  const collects = lamports / (BASE_FEE_LAMPORTS + maxPriorityFeeLamports);
  const text = `the fee payer ${feePayer} holds ${formatSol(lamports)} SOL, enough for ${collects} collects at the highest fee`;
  return { collects, isEnough: collects >= FEW_COLLECTS, text };
}

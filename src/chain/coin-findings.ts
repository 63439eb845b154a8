import { createLruCache } from "../store/lru-cache.ts";
import type { UncollectableReason } from "./launchpad/coin-fees.ts";

const REMEMBERED_MS = 3_600_000;
/** An entry takes some 200 bytes. Adding one requires a simulated collect. */
const MAX_COINS = 10_000;

interface Finding {
  readonly reason: UncollectableReason;
  readonly tooLittle: bigint | undefined;
}

export type CoinFindings = ReturnType<typeof createCoinFindings>;

/**
 * Remembers for an hour why the last attempt to distribute a coin's shared fees, or to empty an AMM
 * vault, failed. The chain's data does not show the reason. Only lookups use these findings: the
 * next collect tries again.
 */
export function createCoinFindings() {
  /** By the coin's mint, or the vault's address. */
  const findings = createLruCache<string, Finding>(MAX_COINS, { ttl: REMEMBERED_MS });
  return {
    /**
     * Returns why the fees cannot be distributed. Undefined if no collect tried within the hour, if
     * the last try succeeded, or if `distributable` now exceeds the amount that was too little.
     */
    reasonOf(mint: string, distributable: bigint): UncollectableReason | undefined {
      const { reason, tooLittle = distributable } = findings.get(mint) ?? {};
      return distributable <= tooLittle ? reason : undefined;
    },
    /**
     * Records the result of a simulation or a landed transaction, for a coin or an AMM vault.
     * `reason`: undefined if the fees were moved. `tooLittle`: the lamports that were not moved
     * because they were too few.
     */
    found(mintOrVault: string, reason: UncollectableReason | undefined, tooLittle?: bigint): void {
      findings.set(mintOrVault, reason && { reason, tooLittle });
    },
    /**
     * The lamports that the AMM last left in its vault; undefined if none, or if no collect tried
     * within the hour.
     */
    leftInAmm: (ammVault: string) => findings.get(ammVault)?.tooLittle,
  };
}

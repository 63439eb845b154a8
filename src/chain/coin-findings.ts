import { createLruCache } from "../store/lru-cache.ts";
import type { UncollectableReason } from "./launchpad/coin-fees.ts";

const REMEMBERED_MS = 3_600_000;
/** Each takes a simulated collect, and some 200 bytes. */
const MAX_COINS = 10_000;

interface Finding {
  readonly reason: UncollectableReason;
  readonly tooLittle: bigint | undefined;
}

export type CoinFindings = ReturnType<typeof createCoinFindings>;

/**
 * Remembers for an hour why the last collect that tried could not distribute a coin's shared fees, or move what is in a
 * vault of the AMM: reading the accounts does not show that. It is only shown, so the next collect tries again.
 */
export function createCoinFindings() {
  /** By the coin's mint, or the vault's address. */
  const findings = createLruCache<string, Finding>(MAX_COINS, { ttl: REMEMBERED_MS });
  return {
    /**
     * Undefined if no collect has tried within the hour, if the last one could distribute the fees, or if they are more
     * now than was too little.
     */
    reasonOf(mint: string, distributable: bigint): UncollectableReason | undefined {
      const { reason, tooLittle = distributable } = findings.get(mint) ?? {};
      return distributable <= tooLittle ? reason : undefined;
    },
    /**
     * What a simulation or a landed transaction shows; undefined if it distributes the fees. `tooLittle`: the lamports of
     * which it distributes nothing, if more may be enough.
     */
    found(mint: string, reason: UncollectableReason | undefined, tooLittle?: bigint): void {
      findings.set(mint, reason && { reason, tooLittle });
    },
    /** What the AMM left in its vault when the last collect tried; undefined if none has within the hour, or it moved all. */
    leftInAmm: (ammVault: string) => findings.get(ammVault)?.tooLittle,
    /** The wrapped SOL that the AMM leaves in its vault in a simulation. */
    foundInAmm(ammVault: string, left: bigint): void {
      findings.set(ammVault, left > 0n ? { reason: "BELOW_AMM_MINIMUM", tooLittle: left } : undefined);
    },
  };
}

import { createHash, randomInt } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { ALL_BPS } from "../chain/launchpad/sharing-config.ts";
import type { Chain } from "./chain/chain.ts";
import type { Coins } from "./chain/coins.ts";
import { addCreatorFees } from "./chain/creator-fees.ts";
import { STRANGER } from "./chain/sharing.ts";

/**
 * In lamports, if the caller names no amount. Even the least lets a sweep pay the rent of any
 * account that it creates: see `isRentAcceptable`.
 */
const LEAST_FEES = 100_000_000;
const MOST_FEES = 500_000_000;
/** The most that a caller may name: 100 SOL. The faucet has 5,000,000. */
export const MOST_LAMPORTS = 100_000_000_000n;

/**
 * Where fees arrive: in the creator's vault, on a curve, in a pool, or on the curve of a coin with
 * shared fees.
 */
export const FEE_SOURCES = ["VAULT", "CURVE", "POOL", "SHARED"] as const;
type FeeSource = (typeof FEE_SOURCES)[number];

/** An account's share of a coin that it shares with a stranger, in basis points. */
const SHARE_BPS = 6_000;

/**
 * Creator fees that trading has earned. If the coin's fees are shared, the account gets only its
 * share.
 */
interface EarnedFees {
  readonly lamports: bigint;
  /** The mint of the coin on which the fees wait, in base58; null if the fees are in the vault. */
  readonly mint: string | null;
}

/**
 * Simulates trading that earns an account these lamports, or 0.1 to 0.5 SOL. Each account has one
 * coin per source, launched before its first trade. Returns undefined if no account of the sandbox
 * has the id. The faucet pays, so trading fails once the faucet is empty.
 */
export type Trade = (
  socialId: string,
  source: FeeSource,
  lamports?: bigint,
) => EarnedFees | undefined;

export function createTrading(needs: {
  chain: Chain;
  coins: Coins;
  accounts: readonly { readonly id: string; readonly address: string }[];
}): Trade {
  const { chain, coins } = needs;
  const addresses = new Map(needs.accounts.map(({ id, address }) => [id, address]));

  return (socialId, source, lamports = BigInt(randomInt(LEAST_FEES, MOST_FEES + 1))) => {
    const creator = addresses.get(socialId);
    if (creator === undefined) return undefined;
    if (source === "VAULT") {
      addCreatorFees(chain, creator, lamports);
      return { lamports, mint: null };
    }
    const mint = mintFor(socialId, source);
    if (coins.creatorOf(mint) === undefined) {
      const isShared = source === "SHARED";
      const shareholders = [
        { address: creator, bps: SHARE_BPS },
        { address: STRANGER, bps: ALL_BPS - SHARE_BPS },
      ];
      coins.launch({ mint, creator, ...(isShared && { kind: "shared", shareholders }) });
      if (source === "POOL") coins.migrate(mint);
    }
    coins.addFees(mint, lamports);
    return { lamports, mint };
  };
}

/** Derives a coin's mint. The coin of `band` in seed.json has the mint derived for `SHARED`. */
function mintFor(socialId: string, source: FeeSource): string {
  return new PublicKey(
    createHash("sha256").update(`${source} coin of ${socialId}`).digest(),
  ).toBase58();
}

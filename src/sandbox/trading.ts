import { createHash, randomInt } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import type { Stage } from "../chain/launchpad/fee-accounts.ts";
import { ALL_BPS } from "../chain/launchpad/sharing-config.ts";
import type { Chain } from "./chain/chain.ts";
import type { Coins } from "./chain/coins.ts";
import { addCreatorFees } from "./chain/creator-fees.ts";
import type { LaunchpadPrograms } from "./chain/creator-fees.ts";
import { STRANGER } from "./chain/sharing.ts";

/** In lamports. The least pays for the rent of any account that a sweep has to create: see `isRentAcceptable`. */
const LEAST_FEES = 100_000_000;
const MOST_FEES = 500_000_000;

/** Where the fees of a coin arrive. A shared one trades on its curve. */
type CoinSource = Stage | "SHARED";

/** Where the fees of trading arrive: in the creator's vault, or at a coin. */
type FeeSource = "VAULT" | CoinSource;

/** In basis points: the part of an account that shares a coin with a stranger. */
const SHARE_BPS = 6_000;

/** Creator fees that trading has earned. Of a shared coin's fees, the account gets only its share. */
interface EarnedFees {
  readonly lamports: bigint;
  /** The coin on which they wait, in base58; null if they are in the vault. */
  readonly mint: string | null;
}

/**
 * Lets trading happen that earns an account 0.1 to 0.5 SOL. Fees of a coin wait on one coin per account and source,
 * launched at its first trade. Returns undefined for an id that no account of the sandbox has. The faucet pays, so all
 * amounts together are at most what it holds.
 */
export type Trade = (socialId: string, source: FeeSource) => EarnedFees | undefined;

export function createTrading(needs: {
  chain: Chain;
  coins: Coins;
  launchpad: LaunchpadPrograms;
  accounts: readonly { readonly id: string; readonly address: string }[];
}): Trade {
  const { chain, coins, launchpad } = needs;
  const addresses = new Map(needs.accounts.map(({ id, address }) => [id, address]));

  return (socialId, source) => {
    const creator = addresses.get(socialId);
    if (creator === undefined) return undefined;
    const lamports = BigInt(randomInt(LEAST_FEES, MOST_FEES + 1));
    if (source === "VAULT") {
      addCreatorFees(chain, launchpad, creator, lamports);
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

/** The shared coin of `band` in seed.json has the mint that this returns. */
function mintFor(socialId: string, source: CoinSource): string {
  return new PublicKey(createHash("sha256").update(`${source} coin of ${socialId}`).digest()).toBase58();
}

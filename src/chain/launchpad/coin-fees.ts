import type { Account } from "../rpc/read-accounts.ts";
import { WRAPPED_SOL_MINT } from "../token-accounts.ts";
import type { CoinAddresses } from "./coin-addresses.ts";
import { decodeFeeAccount, PLACES, STAGES, type FeeAccount, type Stage } from "./fee-accounts.ts";

/** Why a collect for an account does not sweep the fees of a coin, with a sentence for callers. */
export const UNCOLLECTABLE = {
  NO_SUCH_COIN: "The launch platform has no coin with this mint.",
  HOLDER_REWARDS: "The coin's creator fees go to its holders.",
  SHARED:
    "The coin's creator fees go to the accounts in its sharing config, when someone distributes them on the launch platform.",
  OTHER_CREATOR: "The coin names another address as its creator.",
  CASHBACK: "The coin's creator fees go back to its traders.",
  OTHER_CURRENCY: "The coin trades in a currency other than SOL.",
  NOTHING_WAITING: "No fees wait here.",
  RENT_TOO_HIGH:
    "The rent to move the fees is more than 2% of them, or more than the service pays per collect.",
  BELOW_AMM_MINIMUM: "The fees in the AMM are below its minimum: collect again after more trading.",
} as const;

export type UncollectableReason = keyof typeof UNCOLLECTABLE;

/** The creator fees that wait in one place of a coin. */
export interface CoinFees {
  readonly mint: string;
  /** Null for {@link UNCOLLECTABLE.NO_SUCH_COIN}, like the next two. */
  readonly stage: Stage | null;
  /** In base58; the wrapped SOL mint for SOL. */
  readonly quoteMint: string | null;
  /** In the smallest unit of the quote mint. */
  readonly amount: bigint | null;
  /** Null if a sweep can move the fees to the account's vaults. */
  readonly reason: UncollectableReason | null;
  /** By how many bytes a sweep makes the account grow, at the payer's expense. */
  readonly missingBytes: number;
}

/** Returns the fees of a coin for the account whose address is `creator`, in base58: see {@link createReadCoinFees}. */
export type ReadCoinFees = (
  coin: CoinAddresses,
  accounts: Readonly<Record<(typeof PLACES)[Stage]["account"], Account | undefined>>,
  creator: string,
) => CoinFees[];

/**
 * Reads a coin's fees from the accounts of its places, which must come with all their data: an entry for each that
 * exists, or a single entry if none does. A place where the coin no longer trades has an entry only while fees wait
 * there. The chain alone decides which coins are the creator's.
 */
export function createReadCoinFees(programs: {
  launchpadProgramId: string;
  launchpadAmmProgramId: string;
}): ReadCoinFees {
  return (coin, accounts, creator) => {
    const { mint } = coin;
    const toCoinFees = (stage: Stage, account: FeeAccount): CoinFees => ({
      mint,
      stage,
      quoteMint: account.quoteMint,
      amount: account.waiting,
      reason: reasonOf(coin, account, creator),
      missingBytes: account.missingBytes,
    });

    const places = STAGES.flatMap((stage) => {
      const account = decodeFeeAccount(stage, accounts[PLACES[stage].account], programs);
      return account ? [{ stage, account }] : [];
    });
    const fees = places
      .filter((place) => place.account.waiting > 0n || place === places.at(-1))
      .map(({ stage, account }) => toCoinFees(stage, account));
    if (fees.length > 0) return fees;
    return [{ mint, stage: null, quoteMint: null, amount: null, reason: "NO_SUCH_COIN", missingBytes: 0 }];
  };
}

/** Checks holder rewards and sharing before the creator: such a coin no longer names the account that launched it. */
function reasonOf(coin: CoinAddresses, account: FeeAccount, creator: string): UncollectableReason | null {
  if (account.isHolderReward) return "HOLDER_REWARDS";
  if (account.creator !== creator) {
    return account.creator === coin.sharingConfig.address ? "SHARED" : "OTHER_CREATOR";
  }
  if (account.isCashback) return "CASHBACK";
  if (account.quoteMint !== WRAPPED_SOL_MINT.toBase58()) return "OTHER_CURRENCY";
  return account.waiting > 0n ? null : "NOTHING_WAITING";
}

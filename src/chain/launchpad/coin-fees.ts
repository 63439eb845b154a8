import type { Rent } from "../rent.ts";
import type { Accounts } from "../rpc/read-accounts.ts";
import { toVaults, type Vaults } from "../choose-sweeps.ts";
import { WRAPPED_SOL_MINT } from "../token-accounts.ts";
import type { CoinAddresses } from "./coin-addresses.ts";
import { decodeFeeAccount, PLACES, STAGES, type FeeAccount, type Stage } from "./fee-accounts.ts";
import { ALL_BPS, decodeSharingConfig, type SharingConfig } from "./sharing-config.ts";

const SOL = WRAPPED_SOL_MINT.toBase58();

/** Why a collect for an account does not move the fees of a coin, with a sentence for callers. */
export const UNCOLLECTABLE = {
  NO_SUCH_COIN: "The launch platform has no coin with this mint.",
  HOLDER_REWARDS: "The coin's creator fees go to its holders.",
  SHARED: "The coin's creator fees go to the accounts in its sharing config, and this is none of them.",
  OTHER_CREATOR: "The coin names another address as its creator.",
  CASHBACK: "The coin's creator fees go back to its traders.",
  OTHER_CURRENCY: "The coin trades in a currency other than SOL.",
  NOTHING_WAITING: "No fees wait here.",
  RENT_TOO_HIGH:
    "The rent to move the fees is more than 2% of them, or more than the service pays per collect.",
  BELOW_AMM_MINIMUM: "The fees in the AMM are below its minimum: collect again after more trading.",
  PAUSED: "The launch platform has paused the distribution of the coin's shared fees.",
  BELOW_SHARING_MINIMUM:
    "The coin's shared fees are below the launch platform's minimum, or the account's share is below that of a collect: collect again after more trading.",
  SHAREHOLDER_BLOCKED:
    "Another account that shares the coin's fees cannot receive its part now, and a distribution pays all or none.",
} as const;

export type UncollectableReason = keyof typeof UNCOLLECTABLE;

/** Where fees wait: in a place of the coin, or, as SHARED, in the vaults of its sharing config. */
type FeeStage = Stage | "SHARED";

/** The creator fees of a coin that wait in one place. */
export interface CoinFees {
  readonly mint: string;
  /** Null for {@link UNCOLLECTABLE.NO_SUCH_COIN}, like the next. */
  readonly stage: FeeStage | null;
  /** In base58; the wrapped SOL mint for SOL. */
  readonly quoteMint: string | null;
  /**
   * In the smallest unit of the quote mint. The account's share, if it shares the fees. Null for
   * {@link UNCOLLECTABLE.NO_SUCH_COIN}, and for a pool that is not read.
   */
  readonly amount: bigint | null;
  /** The account's share of the fees, in ten-thousandths. */
  readonly shareBps: number;
  /** Null if a collect can move the fees to the account. */
  readonly reason: UncollectableReason | null;
}

/** The fees in one place of a coin that is not shared. */
interface OwnFees extends CoinFees {
  /** By how many bytes a sweep makes the account grow, at the payer's expense. */
  readonly missingBytes: number;
}

/** A place that exists. */
interface CoinPlace {
  readonly stage: Stage;
  /** That of the curve, if `isUnread`. */
  readonly account: FeeAccount;
  /** The pool of a coin in another currency has another address than the one that is read. */
  readonly isUnread: boolean;
}

/** What the accounts of a coin say. */
export interface Coin {
  readonly addresses: CoinAddresses;
  /** In the order in which the coin trades there. */
  readonly places: readonly CoinPlace[];
  /** Who shares the fees; undefined unless a place names the coin's sharing config as the creator. */
  readonly sharing: SharingConfig | undefined;
  /** Those of the sharing config. */
  readonly vaults: Vaults;
}

/** The addresses of the accounts of a coin, from which {@link DecodeCoin} decodes it. */
export function keysOfCoin({ curve, pool, sharingConfig }: CoinAddresses): string[] {
  return [curve, pool, sharingConfig.address, sharingConfig.creatorVault, sharingConfig.ammVault];
}

/**
 * Decodes a coin from its accounts, with {@link COIN_BYTES} of their data, in the order of {@link keysOfCoin}. Undefined
 * if one cannot be used.
 */
export type DecodeCoin = (addresses: CoinAddresses, accounts: Accounts, rent: Rent) => Coin | undefined;

/** The chain alone decides whose a coin's fees are. */
export function createDecodeCoin(programs: {
  launchpadProgramId: string;
  launchpadAmmProgramId: string;
  launchpadFeesProgramId: string;
}): DecodeCoin {
  return (addresses, accounts, rent) => {
    if (accounts.some((account) => account?.isRounded)) return undefined;
    const [curve, pool, sharingConfig, creatorVault, ammVault] = accounts;
    const ofPlaces = { curve, pool };
    const read = STAGES.flatMap((stage): CoinPlace[] => {
      const account = decodeFeeAccount(stage, ofPlaces[PLACES[stage].account], programs);
      return account ? [{ stage, account, isUnread: false }] : [];
    });
    const [first] = read;
    const isElsewhere = first?.account.isComplete && first.account.quoteMint !== SOL;
    const places = isElsewhere ? [first, { ...first, stage: "POOL" as const, isUnread: true }] : read;
    const isShared = places.some(({ account }) => account.creator === addresses.sharingConfig.address);
    const sharing = isShared
      ? decodeSharingConfig(sharingConfig, addresses.mint, programs.launchpadFeesProgramId)
      : undefined;
    return { addresses, places, sharing, vaults: toVaults(creatorVault, ammVault, rent) };
  };
}

/**
 * The fees of a coin for the account whose address is `creator`, in base58, if it is none of those that share them: an
 * entry for each place that exists, or a single entry if none does. A place where the coin no longer trades has an entry
 * only while fees wait there.
 */
export function toCoinFees(coin: Coin, creator: string): OwnFees[] {
  const { addresses, places } = coin;
  const { mint } = addresses;
  const fees = places
    .filter((place) => place.account.waiting > 0n || place === places.at(-1))
    .map(({ stage, account, isUnread }) => ({
      mint,
      stage,
      quoteMint: account.quoteMint,
      amount: isUnread ? null : account.waiting,
      shareBps: account.creator === creator ? ALL_BPS : 0,
      reason: reasonOf(addresses, account, creator),
      missingBytes: account.missingBytes,
    }));
  const none = { mint, stage: null, quoteMint: null, amount: null, shareBps: 0, missingBytes: 0 };
  return fees.length > 0 ? fees : [{ ...none, reason: "NO_SUCH_COIN" }];
}

/**
 * Why the fees of a place do not go to `creator`; null if they do. Checks holder rewards and sharing before the creator:
 * such a coin no longer names the account that launched it.
 */
export function reasonOf(
  { sharingConfig }: CoinAddresses,
  account: FeeAccount,
  creator: string,
): UncollectableReason | null {
  if (account.isHolderReward) return "HOLDER_REWARDS";
  if (account.creator !== creator) {
    return account.creator === sharingConfig.address ? "SHARED" : "OTHER_CREATOR";
  }
  if (account.isCashback) return "CASHBACK";
  if (account.quoteMint !== SOL) return "OTHER_CURRENCY";
  return account.waiting > 0n ? null : "NOTHING_WAITING";
}

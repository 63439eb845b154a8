import { toLamports } from "../primitives/lamports.ts";
import type { Rent } from "../primitives/rent.ts";
import type { Accounts } from "../rpc/read-accounts.ts";
import { toVaults, type Sweep, type Vaults } from "./choose-sweeps.ts";
import { WRAPPED_SOL_MINT } from "./token-accounts.ts";
import type { CoinAddresses } from "./coin-addresses.ts";
import { decodeFeeAccount, PLACES, STAGES, type FeeAccount, type Stage } from "./fee-accounts.ts";
import { ALL_BPS, decodeSharingConfig, type SharingConfig } from "./sharing-config.ts";

/**
 * Reasons why a collect does not move a coin's fees to an account, each with a sentence for
 * callers.
 */
export const UNCOLLECTABLE = {
  NO_SUCH_COIN: "The launch platform has no coin with this mint.",
  HOLDER_REWARDS: "The coin's creator fees go to its holders.",
  SHARED:
    "The coin's creator fees go to the accounts in its sharing config, and this is none of them.",
  OTHER_CREATOR: "The coin names another address as its creator.",
  CASHBACK: "The coin's creator fees go back to its traders.",
  OTHER_CURRENCY: "The coin trades in a currency other than SOL.",
  NOTHING_WAITING: "No fees wait here.",
  RENT_TOO_HIGH:
    "The rent to move the fees is more than 2% of them, or more than the service pays per collect.",
  BELOW_AMM_MINIMUM: "The fees in the AMM are below its minimum: collect again after more trading.",
  PAUSED: "The launch platform has paused the distribution of the coin's shared fees.",
  BELOW_SHARING_MINIMUM:
    "The account's share is below the minimum of a collect, or the part of another account that shares the coin's fees would leave it below its rent-exempt minimum, and a distribution pays all or none: collect again after more trading.",
  SHAREHOLDER_BLOCKED:
    "Another account that shares the coin's fees is a program, or has no share, so the launch platform refuses the distribution.",
} as const;

export type UncollectableReason = keyof typeof UNCOLLECTABLE;

/**
 * A coin's uncollected creator fees: on its curve, in its pool, or in the vaults of its sharing
 * config (SHARED).
 */
export interface CoinFees {
  readonly mint: string;
  /** Null, like `quoteMint`, for {@link UNCOLLECTABLE.NO_SUCH_COIN}. */
  readonly stage: Stage | "SHARED" | null;
  /** In base58; the wrapped SOL mint for SOL. */
  readonly quoteMint: string | null;
  /**
   * In the quote mint's smallest unit; for a shareholder, its share. Null for `NO_SUCH_COIN` or an
   * unread pool.
   */
  readonly amount: bigint | null;
  /** The account's share of the fees, in ten-thousandths. */
  readonly shareBps: number;
  /** Null if a collect can move the fees to the account. */
  readonly reason: UncollectableReason | null;
}

/** A coin's fees, with the sweep that moves them; `sweep` is undefined if none can. */
export interface SweepableFees extends CoinFees {
  readonly sweep: Sweep | undefined;
}

/** A curve or pool that exists. */
interface CoinPlace {
  readonly stage: Stage;
  /** The place's account; for an unread pool, the curve's. */
  readonly account: FeeAccount;
  /** True for a pool that trades in another currency than SOL: only SOL pools are read. */
  readonly isUnread: boolean;
}

/** A coin, decoded from its accounts. */
export interface Coin {
  readonly addresses: CoinAddresses;
  /** The curve and the pool, in this order, if they exist. */
  readonly places: readonly CoinPlace[];
  /** Undefined unless the curve or the pool names the coin's sharing config as the creator. */
  readonly sharing: SharingConfig | undefined;
  /** The vaults of the sharing config. */
  readonly vaults: Vaults;
}

/** The addresses of the accounts from which {@link decodeCoin} decodes a coin. */
export function keysOfCoin({ curve, pool, sharingConfig }: CoinAddresses): string[] {
  return [curve, pool, sharingConfig.address, sharingConfig.creatorVault, sharingConfig.ammVault];
}

/**
 * Decodes a coin from the accounts of {@link keysOfCoin}, in that order, each with {@link
 * COIN_BYTES} of data. Only these accounts decide who receives a coin's fees.
 */
export function decodeCoin(addresses: CoinAddresses, accounts: Accounts, rent: Rent): Coin {
  const [curve, pool, sharingConfig, creatorVault, ammVault] = accounts;
  const ofPlaces = { curve, pool };
  const read = STAGES.flatMap((stage): CoinPlace[] => {
    const account = decodeFeeAccount(stage, ofPlaces[PLACES[stage].account], rent);
    return account ? [{ stage, account, isUnread: false }] : [];
  });
  const [first] = read;
  const isElsewhere = first?.account.isComplete && first.account.quoteMint !== WRAPPED_SOL_MINT;
  const places = isElsewhere ? [first, { ...first, stage: "POOL" as const, isUnread: true }] : read;
  const isShared = places.some(
    ({ account }) => account.creator === addresses.sharingConfig.address,
  );
  const sharing = isShared ? decodeSharingConfig(sharingConfig, addresses.mint) : undefined;
  return { addresses, places, sharing, vaults: toVaults(creatorVault, ammVault, rent) };
}

/** Returns an entry for each place of a coin where fees wait, and for the last one. */
export function entriesOf(
  { addresses: { mint }, places }: Pick<Coin, "addresses" | "places">,
  toEntry: (place: CoinPlace) => Omit<SweepableFees, "mint" | "stage" | "quoteMint">,
): SweepableFees[] {
  return places
    .filter((place) => place.account.waiting > 0n || place === places.at(-1))
    .map((place) => {
      const { stage, account, isUnread } = place;
      const entry = { mint, stage, quoteMint: account.quoteMint, ...toEntry(place) };
      return isUnread ? { ...entry, amount: null } : entry;
    });
}

/**
 * Returns a coin's fees for an account that does not share them. `creator`: the account's address,
 * in base58. Returns an entry each for the curve and the pool, or a `NO_SUCH_COIN` entry if neither
 * exists. If there is a pool, the curve has an entry only while fees wait on the curve.
 */
export function toCoinFees(coin: Coin, creator: string): SweepableFees[] {
  const { addresses } = coin;
  const fees = entriesOf(coin, ({ stage, account }) => {
    const { waiting: amount, topUp } = account;
    const reason = reasonOf(addresses, account, creator);
    const sweep = { coin: addresses, stage, amount: toLamports(amount), topUp };
    return {
      amount,
      reason,
      shareBps: account.creator === creator ? ALL_BPS : 0,
      sweep: reason === null ? sweep : undefined,
    };
  });
  const { mint } = addresses;
  const none = { mint, stage: null, quoteMint: null, amount: null, shareBps: 0, sweep: undefined };
  return fees.length > 0 ? fees : [{ ...none, reason: "NO_SUCH_COIN" }];
}

/**
 * Null if a collect can move the fees. Checks holder rewards and sharing first, because both
 * replace the creator.
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
  if (account.quoteMint !== WRAPPED_SOL_MINT) return "OTHER_CURRENCY";
  return account.waiting > 0n ? null : "NOTHING_WAITING";
}

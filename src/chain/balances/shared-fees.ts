import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
import {
  reasonOf,
  type Coin,
  type CoinFees,
  type SweepableFees,
  type UncollectableReason,
} from "../launchpad/coin-fees.ts";
import type { FeeAccount, Stage } from "../launchpad/fee-accounts.ts";
import { ALL_BPS, type Shareholder, type SharingConfig } from "../launchpad/sharing-config.ts";
import { isReceiverBelowRent, type TransactionError } from "../rpc/transaction-error.ts";
import { growthRentOf, type Distribution } from "../launchpad/choose-sweeps.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "../launchpad/program-ids.ts";
import { WRAPPED_SOL_MINT } from "../launchpad/token-accounts.ts";

/**
 * The programs that a transaction with a distribution calls; the last one is the System program.
 */
const CALLED_PROGRAMS = [
  LAUNCHPAD_PROGRAM_ID,
  LAUNCHPAD_AMM_PROGRAM_ID,
  "11111111111111111111111111111111",
];

/**
 * A distribution pays nothing while the sharing config's creator vault holds fewer lamports than
 * this, rent included. The launch platform does not publish this minimum, so collects try smaller
 * amounts too, but drop no pool for one.
 */
const MIN_HELD = 1_781_760n;

/**
 * Returns an account's share of an amount. Rounds down for each entry in the config, as the launch
 * platform does.
 */
export function partOf(
  amount: bigint,
  shareholders: readonly Shareholder[],
  address: string,
): bigint {
  return shareholders
    .filter((shareholder) => shareholder.address === address)
    .reduce((sum, { bps }) => sum + (amount * BigInt(bps)) / BigInt(ALL_BPS), 0n);
}

/**
 * Returns the most lamports that cannot be distributed, if a distribution fails because one of the
 * `poor` shareholders does not exist, and its part is less than the rent-exempt minimum. Undefined
 * for another error: more fees do not help.
 */
export function tooLittleFor(
  shareholders: readonly Shareholder[],
  err: TransactionError,
  poor: readonly string[],
  rentMinimum: Lamports,
): bigint | undefined {
  if (!isReceiverBelowRent(err)) return undefined;
  const share = shareholders.find(({ address, bps }) => bps > 0 && poor.includes(address));
  return share && (rentMinimum * BigInt(ALL_BPS) - 1n) / BigInt(share.bps);
}

/**
 * Returns a coin's fees for one of its shareholders: an entry for each place where fees wait
 * (curve, pool, vaults), all with the same distribution. Only a simulation shows whether the other
 * shareholders can be paid.
 */
export function toSharedFees(
  { addresses: coin, places, vaults }: Coin,
  { isPaused, shareholders }: SharingConfig,
  needs: {
    address: string;
    feePayer: string;
    /** The smallest share that is worth a collect. */
    minCollectLamports: Lamports;
    /**
     * Returns why the last attempt to distribute this amount failed; undefined if an attempt may
     * succeed.
     */
    reasonFound: (distributable: bigint) => UncollectableReason | undefined;
  },
): SweepableFees[] {
  const { address, feePayer, minCollectLamports, reasonFound } = needs;
  const shareBps = shareholders.reduce(
    (sum, each) => sum + (each.address === address ? each.bps : 0),
    0,
  );
  const share = (amount: bigint) => partOf(amount, shareholders, address);
  const curve = places.find(({ stage }) => stage === "CURVE")?.account;
  const isEnough = ({ distributable, amount }: Distribution) =>
    distributable + vaults.rentMinimum >= MIN_HELD && amount >= minCollectLamports;
  const refusal = findReason();
  const distribution = refusal === null && curve ? toDistribution(curve) : undefined;
  const finalRefusal = distribution ? reasonNotCounted(distribution) : refusal;

  /** Returns why no collect can distribute the fees; null if a collect can try. */
  function findReason(): UncollectableReason | null {
    // The platform checks the curve even after the coin has migrated.
    const ofCurve = curve ? reasonOfPlace(curve) : "OTHER_CREATOR";
    if (ofCurve !== null) return ofCurve;
    if (isPaused) return "PAUSED";
    // The fee payer signs the distribution, so it must not be one of the shareholders. A program
    // that the transaction calls cannot be one either: a message cannot write to it.
    const refusedAddresses = [feePayer, ...CALLED_PROGRAMS];
    return shareholders.some(({ address }) => refusedAddresses.includes(address))
      ? "SHAREHOLDER_BLOCKED"
      : null;
  }

  /**
   * Returns why a lookup does not count the fees, although a collect would try to distribute them.
   */
  function reasonNotCounted(all: Distribution): UncollectableReason | null {
    return isEnough(all) ? (reasonFound(all.distributable) ?? null) : "BELOW_SHARING_MINIMUM";
  }

  function toDistribution(curve: FeeAccount): Distribution {
    const pool = places.find(
      ({ stage, account }) => stage === "POOL" && reasonOfPlace(account) === null,
    )?.account;
    const inAmm = vaults.ammVault + (pool?.waiting ?? 0n);

    function compose(fromPool?: FeeAccount): Distribution {
      const heldAmount = toLamports(vaults.creatorVault + (fromPool ? inAmm : 0n));
      const paidRent = curve.waiting > 0n ? saturatingSubtract(vaults.rentMinimum, heldAmount) : 0n;
      const distributable = saturatingSubtract(
        toLamports(heldAmount + paidRent + curve.waiting),
        vaults.rentMinimum,
      );
      // Nothing trades on the curve of a coin that has migrated.
      const withCurve = !pool || curve.waiting > 0n;
      const forCurve = withCurve ? growthRentOf(curve.missingBytes, vaults) + paidRent : 0n;
      const forPool = fromPool
        ? growthRentOf(fromPool.missingBytes, vaults) + vaults.missingRent.POOL
        : 0n;
      return {
        coin,
        stage: "SHARED",
        amount: toLamports(share(distributable)),
        growthRent: toLamports(forCurve + forPool),
        distributable,
        shareholders,
        withCurve,
        withPool: fromPool !== undefined,
      };
    }
    const withoutPool = compose();
    if (!pool || inAmm < vaults.ammMinimum) return withoutPool;
    return { ...compose(pool), withoutPool: isEnough(withoutPool) ? withoutPool : undefined };
  }

  /** Returns why a distribution must exclude this curve or pool; null if it need not. */
  function reasonOfPlace(account: FeeAccount): UncollectableReason | null {
    const reason = reasonOf(coin, account, coin.sharingConfig.address);
    return reason === "NOTHING_WAITING" ? null : reason;
  }

  function toFees(
    stage: CoinFees["stage"],
    quoteMint: string,
    amount: bigint | null,
    reason: CoinFees["reason"],
  ): SweepableFees {
    const reasonNow = reason ?? (amount === 0n ? "NOTHING_WAITING" : finalRefusal);
    return {
      mint: coin.mint,
      stage,
      quoteMint,
      amount,
      shareBps,
      reason: reasonNow,
      sweep: distribution,
    };
  }

  function reasonNotMoved(stage: Stage, waiting: bigint): UncollectableReason | null {
    if (stage === "CURVE" || waiting === 0n) return null;
    return vaults.ammVault + waiting < vaults.ammMinimum ? "BELOW_AMM_MINIMUM" : null;
  }

  const inPlaces = places
    .filter((place) => place.account.waiting > 0n || place === places.at(-1))
    .map(({ stage, account, isUnread }) =>
      toFees(
        stage,
        account.quoteMint,
        isUnread ? null : share(account.waiting),
        reasonOfPlace(account) ?? reasonNotMoved(stage, account.waiting),
      ),
    );
  // Only a distribution with the pool empties the AMM's vault.
  const inAmm = distribution?.withPool === false ? 0n : share(vaults.ammVault);
  const inVaults = share(saturatingSubtract(vaults.creatorVault, vaults.rentMinimum)) + inAmm;
  const ofVaults = inVaults > 0n ? [toFees("SHARED", WRAPPED_SOL_MINT, inVaults, null)] : [];
  return [...inPlaces, ...ofVaults];
}

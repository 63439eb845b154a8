import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
import { rentMinimumOf, type Rent } from "../primitives/rent.ts";
import {
  entriesOf,
  reasonOf,
  type Coin,
  type SweepableFees,
  type UncollectableReason,
} from "../launchpad/coin-fees.ts";
import type { FeeAccount, Stage } from "../launchpad/fee-accounts.ts";
import { ALL_BPS, type Shareholder, type SharingConfig } from "../launchpad/sharing-config.ts";
import {
  AMM_MINIMUM,
  isRentAcceptable,
  isWithPool,
  type Distribution,
  type PlaceSweep,
} from "../launchpad/choose-sweeps.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "../launchpad/program-ids.ts";
import { WRAPPED_SOL_MINT } from "../launchpad/token-accounts.ts";
import type { Account } from "../rpc/rpc-results.ts";

/**
 * The programs that a transaction with a distribution calls; the last one is the System program.
 */
const CALLED_PROGRAMS = [
  LAUNCHPAD_PROGRAM_ID,
  LAUNCHPAD_AMM_PROGRAM_ID,
  "11111111111111111111111111111111",
];

/**
 * Returns an account's share of an amount. Rounds down for each entry in the config, as the launch
 * platform does.
 */
function partOf(amount: bigint, shareholders: readonly Shareholder[], address: string): bigint {
  return shareholders
    .filter((shareholder) => shareholder.address === address)
    .reduce((sum, { bps }) => sum + (amount * BigInt(bps)) / BigInt(ALL_BPS), 0n);
}

/**
 * Returns the least amount that a distribution pays out: each shareholder's part must raise it to
 * its rent-exempt minimum. 0 if all have theirs. `accounts`: the shareholders', in order.
 */
export function leastDistribution(
  shareholders: readonly Shareholder[],
  accounts: readonly (Pick<Account, "lamports" | "space"> | undefined)[],
  rent: Rent,
): bigint {
  return shareholders.reduce((least, { bps }, i) => {
    const { lamports = 0n, space = 0 } = accounts[i] ?? {};
    const missing = rentMinimumOf(rent, space) - lamports;
    const needed = (missing * BigInt(ALL_BPS) + BigInt(bps) - 1n) / BigInt(bps);
    return needed > least ? needed : least;
  }, 0n);
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
    /** The most rent that one collect may pay. */
    maxRentLamports: Lamports;
    /**
     * Returns why the last attempt to distribute this amount failed; undefined if an attempt may
     * succeed.
     */
    reasonFound: (distributable: bigint) => UncollectableReason | undefined;
  },
): SweepableFees[] {
  const { address, feePayer, minCollectLamports, maxRentLamports, reasonFound } = needs;
  const share = (amount: bigint) => partOf(amount, shareholders, address);
  const shareBps = Number(share(BigInt(ALL_BPS)));
  const curve = places.find(({ stage }) => stage === "CURVE")?.account;
  const isEnough = ({ amount }: Distribution) => amount >= minCollectLamports;
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
    // The platform refuses a config in which one has no share.
    return shareholders.some(({ address, bps }) => bps === 0 || refusedAddresses.includes(address))
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
    const toSweep = (stage: Stage, { waiting, topUp }: FeeAccount): PlaceSweep => ({
      coin,
      stage,
      amount: toLamports(waiting),
      topUp,
    });
    // Nothing trades on the curve of a coin that has migrated.
    const curves = !pool || curve.waiting > 0n ? [toSweep("CURVE", curve)] : [];

    function compose(fromPool?: FeeAccount): Distribution {
      const pools = fromPool ? [toSweep("POOL", fromPool)] : [];
      const heldAmount = vaults.creatorVault + (fromPool ? inAmm : 0n);
      // The AMM skips a transfer that leaves the creator vault below its minimum. Then the curve's
      // sweep comes first, and pays the minimum.
      const isShort = curve.waiting > 0n && heldAmount < vaults.rentMinimum;
      const paidRent = isShort ? vaults.missingRent.CURVE : 0n;
      const distributable = saturatingSubtract(
        toLamports(heldAmount + paidRent + curve.waiting),
        vaults.rentMinimum,
      );
      const places = isShort ? [...curves, ...pools] : [...pools, ...curves];
      const forPlaces = places.reduce((sum, { topUp }) => sum + topUp, 0n);
      return {
        coin,
        stage: "SHARED",
        vaults,
        places,
        distributable,
        shareholders,
        amount: toLamports(share(distributable)),
        topUp: toLamports(forPlaces + paidRent + (fromPool ? vaults.missingRent.POOL : 0n)),
      };
    }
    const withoutPool = compose();
    if (!pool || inAmm < AMM_MINIMUM) return withoutPool;
    const withPool = compose(pool);
    // The AMM vault's rent may be too high, while all else is worth a collect.
    const isAffordable = ({ topUp, amount }: Distribution) =>
      isRentAcceptable(topUp, amount, maxRentLamports);
    const isBetter = isEnough(withoutPool) && isAffordable(withoutPool);
    return isBetter && !isAffordable(withPool) ? withoutPool : withPool;
  }

  /** Returns why a distribution must exclude this curve or pool; null if it need not. */
  function reasonOfPlace(account: FeeAccount): UncollectableReason | null {
    const reason = reasonOf(coin, account, coin.sharingConfig.address);
    return reason === "NOTHING_WAITING" ? null : reason;
  }

  const toEntry = (amount: bigint, reason: UncollectableReason | null) => ({
    amount,
    shareBps,
    sweep: distribution,
    reason: reason ?? (amount === 0n ? "NOTHING_WAITING" : finalRefusal),
  });

  function reasonNotMoved(stage: Stage, waiting: bigint): UncollectableReason | null {
    if (stage === "CURVE" || waiting === 0n) return null;
    if (vaults.ammVault + waiting < AMM_MINIMUM) return "BELOW_AMM_MINIMUM";
    return distribution && !isWithPool(distribution) ? "RENT_TOO_HIGH" : null;
  }

  const inPlaces = entriesOf({ addresses: coin, places }, ({ stage, account }) =>
    toEntry(
      share(account.waiting),
      reasonOfPlace(account) ?? reasonNotMoved(stage, account.waiting),
    ),
  );
  // Only a distribution with the pool empties the AMM's vault.
  const isInAmmMoved = (!distribution || isWithPool(distribution)) && vaults.ammVault > 0n;
  const inAmm = isInAmmMoved ? share(vaults.ammVault) : 0n;
  const inVaults = share(saturatingSubtract(vaults.creatorVault, vaults.rentMinimum)) + inAmm;
  if (inVaults === 0n) return inPlaces;
  const place = { mint: coin.mint, stage: "SHARED", quoteMint: WRAPPED_SOL_MINT } as const;
  return [...inPlaces, { ...place, ...toEntry(inVaults, null) }];
}

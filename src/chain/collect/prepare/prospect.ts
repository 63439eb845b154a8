import type { AccountAddresses } from "../../addresses.ts";
import type { Balances, UncollectedFees } from "../../balances.ts";
import { CollectError } from "../../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import {
  chooseSweeps,
  collectableWith,
  distributionsOf,
  inAmm,
  inVaultsWith,
  rentOf,
  sweepsInto,
  type Distribution,
  type Sweep,
  type Vaults,
} from "../../sweeps.ts";
import type { WalletWithCoins } from "../../wallets.ts";
import type { WaitingFees } from "../landed-outcome.ts";
import type { CollectPart, Composer } from "../message/composer.ts";

/** Fees that are worth a collect. */
export interface Prospect {
  readonly wallet: WalletWithCoins;
  readonly fees: UncollectedFees;
  /** What a transaction does for the account, unless its simulation fails. */
  readonly part: CollectPart;
  /** What waits on shared coins that are collected apart from the vaults, by a later collect. */
  readonly later: readonly WaitingFees[];
  /** What is missing until the address can receive the fees: an empty one cannot receive less than its rent. */
  readonly missing: Lamports | undefined;
}

export type Prospects = ReturnType<typeof createProspects>;

/** Reads what an account can collect, and decides what a transaction does for it. */
export function createProspects(needs: {
  balances: Balances;
  composer: Composer;
  minLamports: Lamports;
  /** The most rent that one collect may pay. */
  maxRent: Lamports;
}) {
  const { balances, composer, minLamports, maxRent } = needs;

  /**
   * The largest sweeps that fit into a transaction, and whose rent is not too high; undefined when a collect with them
   * would move less than `minLamports`.
   */
  function choosePart(
    account: AccountAddresses,
    sweeps: readonly Sweep[],
    vaults: Vaults,
  ): CollectPart | undefined {
    const chosen = chooseSweeps(sweeps, vaults, maxRent, (some) => {
      const withAmm = sweepsInto("ammVault", some).length > 0 || inAmm(some, vaults) > 0n;
      return rentOf(some) <= maxRent && composer.fits([{ account, sweeps: some, withAmm, withVaults: true }]);
    });
    if (collectableWith(chosen, vaults) < minLamports) return undefined;
    const withVaults = inVaultsWith(chosen, vaults) > 0n;
    return { account, sweeps: chosen, withAmm: withVaults && inAmm(chosen, vaults) > 0n, withVaults };
  }

  return {
    choosePart,

    /**
     * Reads an account's fees; undefined when a collect would move less than `minLamports`. `leftOutMs`: for how long a
     * sweep is left out, if at all. A distribution that `mayFail` does not come together with anything else: another
     * shareholder can make it fail. Throws {@link CollectError} `coins-backing-off` if a collect would move enough with
     * the sweeps that are left out.
     */
    async read(
      wallet: WalletWithCoins,
      {
        leftOutMs,
        mayFail,
      }: { leftOutMs: (sweep: Sweep) => number; mayFail: (sweep: Distribution) => boolean },
    ): Promise<Prospect | undefined> {
      const all = await balances.getUncollectedFees(wallet);
      const waits = all.sweeps.map(leftOutMs);
      const ready = all.sweeps.filter((_, i) => waits[i]! <= 0);
      const risky = distributionsOf(ready).filter(mayFail);
      const safe = { ...all, sweeps: ready.filter((sweep) => !risky.some((each) => each === sweep)) };
      for (const fees of [safe, ...risky.map((one) => withOnly(all, one))]) {
        const part = choosePart(wallet.account, fees.sweeps, fees.vaults);
        if (!part) continue;
        const missing = saturatingSubtract(fees.missingRent, collectableWith(part.sweeps, fees.vaults));
        const later = risky
          .filter((each) => !fees.sweeps.includes(each))
          .map(({ coin, amount }) => ({ mint: coin.mint, amount }));
        return { wallet, fees, part, later, missing: missing > 0n ? missing : undefined };
      }
      const leftOut = waits.filter((ms) => ms > 0);
      if (leftOut.length > 0 && choosePart(wallet.account, all.sweeps, all.vaults))
        throw new CollectError({ kind: "coins-backing-off", leftMs: Math.min(...leftOut) });
      return undefined;
    },
  };
}

/** The fees without all but one distribution, and without what the vaults hold. */
function withOnly(fees: UncollectedFees, distribution: Distribution): UncollectedFees {
  const vaults = { ...fees.vaults, creatorVault: toLamports(0), ammVault: toLamports(0) };
  return { ...fees, vaults, sweeps: [distribution] };
}

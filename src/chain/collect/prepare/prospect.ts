import type { AccountAddresses } from "../../addresses.ts";
import type { Balances, UncollectedFees } from "../../balances.ts";
import { CollectError } from "../../collect-error.ts";
import { saturatingSubtract, type Lamports } from "../../lamports.ts";
import {
  chooseSweeps,
  collectableWith,
  inAmm,
  rentOf,
  sweepsInto,
  type Sweep,
  type Vaults,
} from "../../sweeps.ts";
import type { WalletWithCoins } from "../../wallets.ts";
import type { CollectPart, Composer } from "../message/composer.ts";

/** Fees that are worth a collect. */
export interface Prospect {
  readonly wallet: WalletWithCoins;
  readonly fees: UncollectedFees;
  /** What a transaction does for the account, unless its simulation fails. */
  readonly part: CollectPart;
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
      return rentOf(some) <= maxRent && composer.fits([{ account, sweeps: some, withAmm }]);
    });
    if (collectableWith(chosen, vaults) < minLamports) return undefined;
    return { account, sweeps: chosen, withAmm: inAmm(chosen, vaults) > 0n };
  }

  return {
    choosePart,

    /**
     * Reads an account's fees; undefined when a collect would move less than `minLamports`. `leftOutMs`: for how long a
     * coin is left out, if at all. Throws {@link CollectError} `coins-backing-off` if a collect would move enough with
     * the coins that are left out.
     */
    async read(wallet: WalletWithCoins, leftOutMs: (mint: string) => number): Promise<Prospect | undefined> {
      const fees = await balances.getUncollectedFees(wallet);
      const waits = fees.sweeps.map(({ coin }) => leftOutMs(coin.mint));
      const sweeps = fees.sweeps.filter((_, i) => waits[i]! <= 0);
      const part = choosePart(wallet.account, sweeps, fees.vaults);
      if (part) {
        const missing = saturatingSubtract(fees.missingRent, collectableWith(part.sweeps, fees.vaults));
        return { wallet, fees: { ...fees, sweeps }, part, missing: missing > 0n ? missing : undefined };
      }
      const leftOut = waits.filter((ms) => ms > 0);
      if (leftOut.length > 0 && choosePart(wallet.account, fees.sweeps, fees.vaults))
        throw new CollectError({ kind: "coins-backing-off", leftMs: Math.min(...leftOut) });
      return undefined;
    },
  };
}

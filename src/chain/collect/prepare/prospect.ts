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
  type Sweep,
  type Vaults,
  type WaitingFees,
} from "../../sweeps.ts";
import type { WalletWithCoins } from "../../wallets.ts";
import type { Group } from "../coin-backoff.ts";
import type { Payers } from "../fee-budget.ts";
import type { CollectPart, Composer } from "../message/composer.ts";

/** Fees that are worth a transaction. */
export interface Prospect extends Pick<Group, "id" | "isApart"> {
  readonly wallet: WalletWithCoins;
  readonly fees: UncollectedFees;
  /** What a transaction does for the account, unless its simulation fails. */
  readonly part: CollectPart;
  /** What waits on coins that are collected apart from these fees, by a later collect. */
  readonly later: readonly WaitingFees[];
  /** What is missing until the address can receive the fees: an empty one cannot receive less than its rent. */
  readonly missing: Lamports | undefined;
}

/** An account whose fees are about to be collected. */
export interface Candidate {
  readonly prospect: Prospect;
  /** Whether its transaction may do a sweep: a distribution only under its lock. */
  readonly mayDo: (sweep: Sweep) => boolean;
  /** The mints of the coins that it leaves out are added here. */
  readonly leftOut: Set<string>;
  readonly payers: Payers;
  /** Nothing is signed after this. In `performance.now()` time. */
  readonly endsAt: number;
}

export type Prospects = ReturnType<typeof createProspects>;

/** Reads what an account can collect, and decides what a transaction does for it. */
export function createProspects(needs: {
  balances: Balances;
  composer: Composer;
  minCollectLamports: Lamports;
  /** The most rent that one collect may pay. */
  maxRentLamports: Lamports;
}) {
  const { balances, composer, minCollectLamports, maxRentLamports } = needs;

  /**
   * The largest sweeps that fit into a transaction, and whose rent is not too high; undefined when a collect with them
   * would move less than `minCollectLamports`.
   */
  function choosePart(
    account: AccountAddresses,
    sweeps: readonly Sweep[],
    vaults: Vaults,
  ): CollectPart | undefined {
    const chosen = chooseSweeps(sweeps, vaults, maxRentLamports, (some) => {
      const withAmm = sweepsInto("ammVault", some).length > 0 || inAmm(some, vaults) > 0n;
      return (
        rentOf(some) <= maxRentLamports &&
        composer.fits([{ account, sweeps: some, withAmm, withVaults: true }])
      );
    });
    if (collectableWith(chosen, vaults) < minCollectLamports) return undefined;
    const withVaults = inVaultsWith(chosen, vaults) > 0n;
    return { account, sweeps: chosen, withAmm: withVaults && inAmm(chosen, vaults) > 0n, withVaults };
  }

  return {
    choosePart,

    /**
     * Reads an account's fees: one prospect for each group of sweeps with which a collect would move at least
     * `minCollectLamports`, in order. `leftOutMs`: for how long a sweep is left out, if at all. Throws {@link CollectError}
     * `coins-backing-off` if there are none, but would be one with the sweeps that are left out.
     */
    async read(
      wallet: WalletWithCoins,
      {
        leftOutMs,
        inTurn,
      }: { leftOutMs: (sweep: Sweep) => number; inTurn: (sweeps: readonly Sweep[]) => readonly Group[] },
    ): Promise<Prospect[]> {
      const all = await balances.getUncollectedFees(wallet);
      const waits = all.sweeps.map(leftOutMs);
      const ready = all.sweeps.filter((_, i) => waits[i]! <= 0);
      const found = inTurn(ready).flatMap(({ id, isApart, sweeps }): Prospect[] => {
        const isOnlyShared = distributionsOf(sweeps).length === sweeps.length;
        const vaults = isApart && isOnlyShared ? withNothingIn(all.vaults) : all.vaults;
        const part = choosePart(wallet.account, sweeps, vaults);
        if (!part) return [];
        const fees = { ...all, vaults, sweeps };
        const missing = saturatingSubtract(fees.missingRent, collectableWith(part.sweeps, vaults));
        const others = chooseSweeps(
          ready.filter((each) => !sweeps.includes(each)),
          all.vaults,
          maxRentLamports,
        );
        const later = others.map(({ coin, amount }) => ({ mint: coin.mint, amount }));
        return [{ id, isApart, wallet, fees, part, later, missing: missing > 0n ? missing : undefined }];
      });
      const leftOut = waits.filter((ms) => ms > 0);
      if (found.length === 0 && leftOut.length > 0 && choosePart(wallet.account, all.sweeps, all.vaults))
        throw new CollectError({ kind: "coins-backing-off", leftMs: Math.min(...leftOut) });
      return found;
    },
  };
}

/** Vaults whose fees are left to another transaction. */
function withNothingIn(vaults: Vaults): Vaults {
  return { ...vaults, creatorVault: toLamports(0), ammVault: toLamports(0) };
}

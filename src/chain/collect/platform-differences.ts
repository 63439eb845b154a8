import { distributionsOf } from "../launchpad/choose-sweeps.ts";
import type { LandedTransaction } from "../rpc/read-transaction.ts";
import { creatorOf, type CollectPart } from "../units/part.ts";

/**
 * Says what a transaction that landed without an error did for its only part that the launch
 * platform's tested programs do not do; empty if nothing. No difference: that somebody else
 * collected first, that fees arrived after the simulation, or that nothing was paid because a
 * receiver was emptied. `moreRent`: what the fee payer paid besides the fee and the rent that was
 * expected.
 */
export function findDifferences(
  part: CollectPart,
  balances: LandedTransaction["balances"],
  moreRent: bigint,
): string[] {
  const { account, sweeps, vaults } = part;
  const [distribution] = distributionsOf(sweeps);
  const { creatorVault, ammVault } = creatorOf(part);
  const receivers = distribution?.shareholders.map(({ address }) => address) ?? [account.address];
  const gainOf = (address: string): bigint => {
    const { before = 0n, after = 0n } = balances.get(address) ?? {};
    return after > before ? after - before : 0n;
  };
  if (!receivers.some((each) => gainOf(each) > 0n)) return [];
  // Sweeps pay the rent of these.
  const places = sweeps.flatMap(({ coin: { curve, pool } }) => [curve, pool]);
  const known = new Set([...receivers, creatorVault, ammVault, ...places]);
  const others = [...balances.keys()].filter((each) => !known.has(each) && gainOf(each) > 0n);
  const { after = vaults.rentMinimum } = balances.get(creatorVault) ?? {};
  // A distribution's parts are rounded down.
  const leftAmount = after - vaults.rentMinimum;
  const isEmptied = leftAmount >= 0n && leftAmount < BigInt(receivers.length);
  // Fees that arrive after the simulation may need vaults that it did not need.
  const isTooDear = moreRent > gainOf(creatorVault) + gainOf(ammVault);
  return [
    ...others.map((each) => `${each} received ${gainOf(each)} lamports`),
    ...(isEmptied
      ? []
      : [`the creator vault was left with ${leftAmount} lamports above its minimum`]),
    ...(isTooDear ? [`the fee payer paid ${moreRent} lamports more rent than expected`] : []),
  ];
}

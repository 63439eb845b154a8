import { distributionsOf } from "../launchpad/choose-sweeps.ts";
import { ALL_BPS, type Shareholder } from "../launchpad/sharing-config.ts";
import { TOKEN_ACCOUNT_BYTES } from "../launchpad/token-accounts.ts";
import { rentMinimumOf, type Rent } from "../primitives/rent.ts";
import type { LandedTransaction } from "../rpc/read-transaction.ts";
import type { CollectPart } from "../units/part.ts";

/** What a landed transaction was to do for one account, or for one coin's shareholders. */
interface Plan {
  readonly feePayer: string;
  /** The most rent that was to be paid. */
  readonly signedRent: bigint;
  readonly rent: Rent;
}

type PayingPart = Pick<CollectPart, "account" | "sweeps" | "withVaults">;

/** Where a collect takes fees from, and whom it pays. Addresses are in base58. */
interface Payment {
  readonly creatorVault: string;
  readonly ammVault: string;
  /** All accounts that lose lamports, or that the fee payer pays rent for. */
  readonly sources: ReadonlySet<string>;
  readonly receivers: readonly Shareholder[];
}

/**
 * Says what a transaction that landed without an error did for `part` that the launch platform's
 * tested programs do not do; empty if nothing. No difference: that somebody else collected first,
 * that fees arrived after the simulation, or that nothing was paid because a receiver was emptied.
 * A receiver with another role is not judged, so that no stranger can cause a difference.
 */
export function findDifferences(
  part: PayingPart,
  { balances, fee }: Pick<LandedTransaction, "balances" | "fee">,
  { feePayer, signedRent, rent: rentRate }: Plan,
): string[] {
  const rentMinimum = rentMinimumOf(rentRate, 0);
  const tokenMinimum = rentMinimumOf(rentRate, TOKEN_ACCOUNT_BYTES);
  const payment = paymentOf(part);
  const gainOf = (address: string): bigint => {
    const { before, after } = balances.get(address) ?? { before: 0n, after: 0n };
    return after - before;
  };
  const creatorVault = payment && balances.get(payment.creatorVault);
  const payer = balances.get(feePayer);
  if (!payment || !creatorVault || !payer) return [];
  const { sources, receivers } = payment;
  const paidAddresses = [...new Set(receivers.map(({ address }) => address))];
  // Balances that JSON may have rounded are left out.
  const isJudged = paidAddresses.every(
    (address) => balances.has(address) && address !== feePayer && !sources.has(address),
  );
  const paidAmount = paidAddresses.reduce((sum, address) => sum + gainOf(address), 0n);
  if (!isJudged || paidAmount <= 0n) return [];

  // Several accounts share only transactions without sweeps, and then the fee payer pays no rent.
  const rent = part.sweeps.length > 0 ? -gainOf(feePayer) - fee : 0n;
  const lostAmount = [...sources].reduce((sum, address) => sum - gainOf(address), rent);
  const leftAmount = creatorVault.after - rentMinimum;
  const isLeftWrong = leftAmount < 0n || leftAmount >= BigInt(receivers.length);
  // Part of the transaction only if it is to be emptied.
  const { before: inAmm = tokenMinimum } = balances.get(payment.ammVault) ?? {};
  // Fees that arrive after the simulation may need vaults that it did not need.
  const laterRent =
    (creatorVault.before < rentMinimum ? rentMinimum : 0n) +
    (inAmm < tokenMinimum ? tokenMinimum - inAmm : 0n);
  return [
    ...(rent > signedRent + laterRent
      ? [`the fee payer paid ${rent} lamports of rent instead of ${signedRent}`]
      : []),
    ...(isLeftWrong
      ? [`the creator vault was left with ${leftAmount} lamports above its minimum`]
      : []),
    ...(paidAmount === lostAmount
      ? []
      : [`${lostAmount} lamports were taken, and ${paidAmount} paid out`]),
  ];
}

/**
 * Undefined for a part that pays one address twice, or a config that divides less than 100%, which
 * the launch platform does not make.
 */
function paymentOf({ account, sweeps, withVaults }: PayingPart): Payment | undefined {
  const distributions = distributionsOf(sweeps);
  const [distribution] = distributions;
  if (distributions.length > 1 || (distribution && withVaults)) return undefined;
  const receivers = distribution?.shareholders ?? [{ address: account.address, bps: ALL_BPS }];
  if (receivers.reduce((sum, { bps }) => sum + bps, 0) !== ALL_BPS) return undefined;
  const creator = distribution ? distribution.coin.sharingConfig : account;
  return {
    creatorVault: creator.creatorVault,
    ammVault: creator.ammVault,
    sources: new Set([
      ...[creator.creatorVault, creator.ammVault, creator.ammVaultAuthority],
      ...sweeps.flatMap(({ coin: { curve, pool, poolTokens } }) => [curve, pool, poolTokens]),
    ]),
    receivers,
  };
}

import type { AccountAddresses } from "../addresses.ts";
import { toLamports, type Lamports } from "../lamports.ts";
import type { AddressTransaction } from "../rpc/address-history.ts";

/** COLLECTED from the launch platform's vaults, by anyone; RECEIVED otherwise; or WITHDRAWN. */
type TransferKind = "COLLECTED" | "RECEIVED" | "WITHDRAWN";

/** What one transaction added to an account's address, or took from it. */
export interface Transfer {
  readonly kind: TransferKind;
  readonly lamports: Lamports;
  readonly signature: string;
  /** When its block was produced; undefined when the chain does not say. */
  readonly at: Date | undefined;
}

/** Smaller received amounts are left out: anyone can send dust. The smallest amount that prints as more than 0. */
const MIN_RECEIVED = toLamports(100_000);

/** The transfer that a transaction made at an account's address; undefined if there is none to show. */
export function toTransfer(
  transaction: AddressTransaction,
  signature: string,
  account: Pick<AccountAddresses, "address" | "creatorVault">,
  launchpadProgramId: string,
): Transfer | undefined {
  const { before, after } = transaction.balances.get(account.address)!;
  if (transaction.hasFailed || before === after) return undefined;
  const at = toDate(transaction.blockTime);
  if (after < before) return { kind: "WITHDRAWN", lamports: toLamports(before - after), signature, at };
  const lamports = toLamports(after - before);
  if (isCollect(transaction, account, launchpadProgramId))
    return { kind: "COLLECTED", lamports, signature, at };
  return lamports < MIN_RECEIVED ? undefined : { kind: "RECEIVED", lamports, signature, at };
}

/**
 * Whether the vault's balance fell, or the launch platform ran an instruction for the vault and the address:
 * a collect that also fills the vault may leave its balance unchanged.
 */
function isCollect(
  { balances, instructions }: AddressTransaction,
  { address, creatorVault }: Pick<AccountAddresses, "address" | "creatorVault">,
  launchpadProgramId: string,
): boolean {
  const vault = balances.get(creatorVault);
  if (vault && vault.after < vault.before) return true;
  return instructions.some(
    ({ program, accounts }) =>
      program === launchpadProgramId && accounts.includes(address) && accounts.includes(creatorVault),
  );
}

function toDate(seconds: number | undefined): Date | undefined {
  const date = new Date((seconds ?? NaN) * 1000);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

import type { AccountAddresses } from "../addresses.ts";
import { toLamports, type Lamports } from "../lamports.ts";
import { DISTRIBUTIONS } from "../launchpad/instructions.ts";
import { LAUNCHPAD_PROGRAM_ID } from "../launchpad/program-ids.ts";
import type { LandedTransaction } from "../rpc/transactions.ts";

/** What one transaction added to an account's address, or took from it. */
export interface Transfer {
  /**
   * COLLECTED: creator fees from the launch platform, whoever collected them. RECEIVED: all other
   * arrivals.
   */
  readonly kind: "COLLECTED" | "RECEIVED" | "WITHDRAWN";
  readonly lamports: Lamports;
  readonly signature: string;
  /** The time of the transaction's block; undefined when the chain does not say. */
  readonly at: Date | undefined;
}

/**
 * Smaller arrivals are left out: anyone can send dust, and four decimals would show it as 0 SOL.
 */
const MIN_RECEIVED = toLamports(100_000);

/**
 * Returns what a transaction moved to or from an account's address; undefined if there is nothing
 * to show.
 */
export function toTransfer(
  transaction: Pick<LandedTransaction, "err" | "blockTime" | "balances" | "instructions">,
  signature: string,
  account: Pick<AccountAddresses, "address" | "creatorVault">,
): Transfer | undefined {
  const change = transaction.balances.get(account.address);
  if (!change || transaction.err !== null || change.before === change.after) return undefined;
  const { before, after } = change;
  const at = toDate(transaction.blockTime);
  if (after < before)
    return { kind: "WITHDRAWN", lamports: toLamports(before - after), signature, at };
  const lamports = toLamports(after - before);
  if (isCollect(transaction, account)) return { kind: "COLLECTED", lamports, signature, at };
  return lamports < MIN_RECEIVED ? undefined : { kind: "RECEIVED", lamports, signature, at };
}

/**
 * True if the vault's balance fell. But a collect may also fill the vault: also true if an
 * instruction of the launch platform names both the address and the vault, or is a distribution
 * that names the address. Does not derive a distribution's accounts: the platform has checked them,
 * and a transaction can name hundreds.
 */
function isCollect(
  { balances, instructions }: Pick<LandedTransaction, "balances" | "instructions">,
  { address, creatorVault }: Pick<AccountAddresses, "address" | "creatorVault">,
): boolean {
  const vault = balances.get(creatorVault);
  if (vault && vault.after < vault.before) return true;
  return instructions.some(
    ({ program, accounts, data }) =>
      program === LAUNCHPAD_PROGRAM_ID &&
      accounts.includes(address) &&
      (accounts.includes(creatorVault) || DISTRIBUTIONS.includes(data)),
  );
}

function toDate(seconds: number | undefined): Date | undefined {
  const date = new Date((seconds ?? NaN) * 1000);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

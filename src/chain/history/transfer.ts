import type { AccountAddresses } from "../addresses.ts";
import { toLamports, type Lamports } from "../lamports.ts";
import { DISTRIBUTIONS } from "../launchpad/instructions.ts";
import type { LandedTransaction } from "../rpc/transactions.ts";

/** What a history needs of a transaction, for any of its accounts. */
export interface HistoryTransaction {
  /** In seconds since 1970; undefined when the node does not know. */
  readonly blockTime: number | undefined;
  /** The changed balances, by address. */
  readonly changes: LandedTransaction["balances"];
  /** The accounts of each instruction that the launch platform ran. */
  readonly launchpadAccounts: readonly (readonly string[])[];
  /** Those of them that distribute a coin's shared fees. */
  readonly distributionAccounts: readonly (readonly string[])[];
}

/** Leaves out what no history needs: most of a transaction. A failed one changes nothing that a history shows. */
export function toHistoryTransaction(
  {
    err,
    blockTime,
    balances,
    instructions,
  }: Pick<LandedTransaction, "err" | "blockTime" | "balances" | "instructions">,
  launchpadProgramId: string,
): HistoryTransaction {
  const changed = [...balances].filter(([, { before, after }]) => err === null && before !== after);
  const ofLaunchpad = instructions.filter(({ program }) => program === launchpadProgramId);
  return {
    blockTime,
    changes: new Map(changed),
    launchpadAccounts: ofLaunchpad.map(({ accounts }) => accounts),
    distributionAccounts: ofLaunchpad
      .filter(({ data }) => DISTRIBUTIONS.includes(data))
      .map(({ accounts }) => accounts),
  };
}

/** COLLECTED from the launch platform's vaults, the account's or a sharing config's, by anyone; RECEIVED otherwise; or WITHDRAWN. */
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
  transaction: HistoryTransaction,
  signature: string,
  account: Pick<AccountAddresses, "address" | "creatorVault">,
): Transfer | undefined {
  const change = transaction.changes.get(account.address);
  if (!change) return undefined;
  const { before, after } = change;
  const at = toDate(transaction.blockTime);
  if (after < before) return { kind: "WITHDRAWN", lamports: toLamports(before - after), signature, at };
  const lamports = toLamports(after - before);
  if (isCollect(transaction, account)) return { kind: "COLLECTED", lamports, signature, at };
  return lamports < MIN_RECEIVED ? undefined : { kind: "RECEIVED", lamports, signature, at };
}

/**
 * Whether the vault's balance fell, or the launch platform ran an instruction for the vault and the address (a collect
 * that also fills the vault may leave its balance unchanged), or one that distributes a coin's shared fees to the
 * address. The platform checks the accounts of a distribution, so nothing is derived: a transaction can name hundreds.
 */
function isCollect(
  { changes, launchpadAccounts, distributionAccounts }: HistoryTransaction,
  { address, creatorVault }: Pick<AccountAddresses, "address" | "creatorVault">,
): boolean {
  const vault = changes.get(creatorVault);
  if (vault && vault.after < vault.before) return true;
  return (
    launchpadAccounts.some((accounts) => accounts.includes(address) && accounts.includes(creatorVault)) ||
    distributionAccounts.some((accounts) => accounts.includes(address))
  );
}

function toDate(seconds: number | undefined): Date | undefined {
  const date = new Date((seconds ?? NaN) * 1000);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

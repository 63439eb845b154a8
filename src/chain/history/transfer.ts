import { getBase58Encoder } from "@solana/codecs-strings";
import { SystemProgram } from "@solana/web3.js";
import { isBase58 } from "../../contract/base58.ts";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import { toDate } from "../primitives/block-time.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
import { DISTRIBUTIONS } from "../launchpad/instructions.ts";
import { LAUNCHPAD_PROGRAM_ID } from "../launchpad/program-ids.ts";
import type { LandedTransaction } from "../rpc/read-transaction.ts";

/** What one transaction added to an account's address, or took from it. */
export interface Transfer {
  /**
   * COLLECTED: creator fees from the launch platform, whoever collected them, without other
   * arrivals of the same transaction. RECEIVED: all other arrivals.
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
const MIN_ARRIVED = toLamports(100_000);
const NO_CHANGE = { before: toLamports(0), after: toLamports(0) };
const TRANSFER_BYTES = 12;
const SYSTEM_PROGRAM = SystemProgram.programId.toBase58();

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
  const arrivedAmount = toLamports(after - before);
  const movedAmount = movedByCollects(transaction, account);
  const collectedAmount = movedAmount < arrivedAmount ? movedAmount : arrivedAmount;
  if (collectedAmount >= MIN_ARRIVED)
    return { kind: "COLLECTED", lamports: collectedAmount, signature, at };
  return arrivedAmount < MIN_ARRIVED
    ? undefined
    : { kind: "RECEIVED", lamports: arrivedAmount, signature, at };
}

/**
 * Returns the lamports that collects and distributions moved to the address. Only the launch
 * platform signs for the account's vault and for the vaults of sharing configs, so a System
 * transfer from one of these to the address is a collect's own. What the account's vault lost
 * counts too: a node may not keep inner instructions. Does not derive a distribution's accounts:
 * the platform has checked them, and a transaction can name hundreds.
 */
function movedByCollects(
  { balances, instructions }: Pick<LandedTransaction, "balances" | "instructions">,
  { address, creatorVault }: Pick<AccountAddresses, "address" | "creatorVault">,
): Lamports {
  const vaults = new Set([creatorVault]);
  for (const { program, accounts, data } of instructions) {
    const distribution = program === LAUNCHPAD_PROGRAM_ID ? DISTRIBUTIONS.get(data) : undefined;
    if (distribution) vaults.add(accounts[distribution.vault] ?? creatorVault);
  }
  let movedAmount = 0n;
  for (const { program, accounts, data } of instructions) {
    const [from, to] = accounts;
    if (program === SYSTEM_PROGRAM && to === address && vaults.has(from ?? ""))
      movedAmount += decodeTransfer(data);
  }
  const { before, after } = balances.get(creatorVault) ?? NO_CHANGE;
  const lostAmount = saturatingSubtract(before, after);
  return movedAmount > lostAmount ? toLamports(movedAmount) : lostAmount;
}

/**
 * Returns the lamports of a System program's `Transfer`; 0 for other data. Source: the crate
 * solana-system-interface: the variant's index (u32, 2), then the lamports (u64).
 */
function decodeTransfer(data: string): bigint {
  if (!isBase58(data, TRANSFER_BYTES)) return 0n;
  const bytes = Buffer.from(getBase58Encoder().encode(data));
  return bytes.readUInt32LE(0) === 2 ? bytes.readBigUInt64LE(4) : 0n;
}

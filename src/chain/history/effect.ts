import { getBase58Encoder } from "@solana/codecs-strings";
import { SystemProgram } from "@solana/web3.js";
import { isBase58 } from "../../contract/base58.ts";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import { CURVE_SWEEP, DISTRIBUTIONS, POOL_SWEEP, SWEEP } from "../launchpad/instructions.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "../launchpad/program-ids.ts";
import { toDate } from "../primitives/block-time.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
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

/** The coins whose fees a transaction swept or distributed, in base58, each once. */
export interface SweptCoins {
  readonly mints: readonly string[];
  /** The coins' pools, if it swept a pool, which does not name the mint. */
  readonly pools: readonly string[];
}

/** What a transaction did to an account. */
export interface Effect {
  /** Undefined if there is nothing to show. */
  readonly transfer: Transfer | undefined;
  readonly coins: SweptCoins;
}

export const NO_EFFECT: Effect = { transfer: undefined, coins: { mints: [], pools: [] } };

/**
 * Smaller arrivals are left out: anyone can send dust, and four decimals would show it as 0 SOL.
 */
const MIN_ARRIVED = toLamports(100_000);
const NO_CHANGE = { before: toLamports(0), after: toLamports(0) };
const TRANSFER_BYTES = 12;
const SYSTEM_PROGRAM = SystemProgram.programId.toBase58();

/**
 * Returns what a transaction moved to or from an account's address, and the coins whose fees it
 * moved to the account or its vaults.
 *
 * Anyone can make a transaction that names coins, so only instructions of the launch platform
 * count, with the account as the recipient: the platform refuses a recipient that is not the coin's.
 * Only the platform signs for the account's vault and for the vaults of sharing configs, so a System
 * transfer from one of these to the address is a collect's own. It follows the instruction that
 * invokes it. Does not derive a distribution's accounts: the platform has checked them, and a
 * transaction can name hundreds.
 */
export function effectOf(
  transaction: Pick<LandedTransaction, "err" | "blockTime" | "balances" | "instructions">,
  signature: string,
  account: Pick<AccountAddresses, "address" | "creatorVault" | "ammVaultAuthority">,
): Effect {
  const { err, blockTime, balances, instructions } = transaction;
  if (err !== null) return NO_EFFECT;
  const { address, creatorVault, ammVaultAuthority } = account;
  const mints = new Set<string | undefined>();
  const pools = new Set<string | undefined>();
  const vaults = new Set([creatorVault]);
  let movedAmount = 0n;
  for (const { program, accounts, data } of instructions) {
    const distribution = program === LAUNCHPAD_PROGRAM_ID ? DISTRIBUTIONS.get(data) : undefined;
    if (distribution) {
      vaults.add(accounts[distribution.vault] ?? creatorVault);
      if (accounts.includes(address)) mints.add(accounts[distribution.mint]);
    } else if (program === LAUNCHPAD_PROGRAM_ID && data === SWEEP) {
      if (accounts[CURVE_SWEEP.creatorVault] === creatorVault)
        mints.add(accounts[CURVE_SWEEP.mint]);
    } else if (program === LAUNCHPAD_AMM_PROGRAM_ID && data === SWEEP) {
      if (accounts[POOL_SWEEP.ammVaultAuthority] === ammVaultAuthority)
        pools.add(accounts[POOL_SWEEP.pool]);
    } else if (program === SYSTEM_PROGRAM) {
      const [from = "", to] = accounts;
      if (to === address && vaults.has(from)) movedAmount += decodeTransfer(data);
    }
  }

  function findTransfer(): Transfer | undefined {
    const { before, after } = balances.get(address) ?? NO_CHANGE;
    const shared = { signature, at: toDate(blockTime) };
    if (after < before)
      return { kind: "WITHDRAWN", lamports: toLamports(before - after), ...shared };
    const arrivedAmount = saturatingSubtract(after, before);
    const vault = balances.get(creatorVault) ?? NO_CHANGE;
    // A node may not keep inner instructions.
    const lostAmount = saturatingSubtract(vault.before, vault.after);
    const mostCollected = movedAmount > lostAmount ? toLamports(movedAmount) : lostAmount;
    const collectedAmount = mostCollected < arrivedAmount ? mostCollected : arrivedAmount;
    if (collectedAmount >= MIN_ARRIVED)
      return { kind: "COLLECTED", lamports: collectedAmount, ...shared };
    return arrivedAmount < MIN_ARRIVED
      ? undefined
      : { kind: "RECEIVED", lamports: arrivedAmount, ...shared };
  }

  return {
    transfer: findTransfer(),
    coins: { mints: toAddresses(mints), pools: toAddresses(pools) },
  };
}

/** Leaves out what a node did not send. */
const toAddresses = (keys: ReadonlySet<string | undefined>) =>
  [...keys].flatMap((key) => key || []);

/**
 * Returns the lamports of a System program's `Transfer`; 0 for other data. Source: the crate
 * solana-system-interface: the variant's index (u32, 2), then the lamports (u64).
 */
function decodeTransfer(data: string): bigint {
  if (!isBase58(data, TRANSFER_BYTES)) return 0n;
  const bytes = Buffer.from(getBase58Encoder().encode(data));
  return bytes.readUInt32LE(0) === 2 ? bytes.readBigUInt64LE(4) : 0n;
}

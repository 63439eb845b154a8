import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import { CURVE_SWEEP, DISTRIBUTIONS, POOL_SWEEP, SWEEP } from "../launchpad/instructions.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "../launchpad/program-ids.ts";
import type { LandedTransaction } from "../rpc/read-transaction.ts";

/** The coins whose fees a transaction swept or distributed, in base58, each once. */
export interface SweptCoins {
  readonly mints: readonly string[];
  /** The coins' pools, if it swept a pool, which does not name the mint. */
  readonly pools: readonly string[];
}

/** One object for most transactions, because many are cached. */
const NO_COINS: SweptCoins = { mints: [], pools: [] };

/**
 * Returns the coins whose fees a successful transaction moved to an account or its vaults. Anyone
 * can make a transaction that names them, so only instructions of the launch platform count, with
 * the account as the recipient: the platform refuses a recipient that is not the coin's.
 */
export function sweptCoinsOf(
  { instructions }: Pick<LandedTransaction, "instructions">,
  account: Pick<AccountAddresses, "address" | "creatorVault" | "ammVaultAuthority">,
): SweptCoins {
  const mints = new Set<string | undefined>();
  const pools = new Set<string | undefined>();
  for (const { program, accounts, data } of instructions) {
    if (program === LAUNCHPAD_PROGRAM_ID) {
      const distribution = DISTRIBUTIONS.get(data);
      if (distribution && accounts.includes(account.address))
        mints.add(accounts[distribution.mint]);
      if (data === SWEEP && accounts[CURVE_SWEEP.creatorVault] === account.creatorVault)
        mints.add(accounts[CURVE_SWEEP.mint]);
    } else if (
      program === LAUNCHPAD_AMM_PROGRAM_ID &&
      data === SWEEP &&
      accounts[POOL_SWEEP.ammVaultAuthority] === account.ammVaultAuthority
    )
      pools.add(accounts[POOL_SWEEP.pool]);
  }
  if (mints.size + pools.size === 0) return NO_COINS;
  return { mints: toAddresses(mints), pools: toAddresses(pools) };
}

/** Leaves out what a node did not send. */
const toAddresses = (keys: ReadonlySet<string | undefined>) =>
  [...keys].flatMap((key) => key || []);

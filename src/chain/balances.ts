import type { AccountAddresses } from "./addresses.ts";
import { saturatingSubtract, toLamports, type Lamports } from "./lamports.ts";
import type { CoinAddresses } from "./launchpad/coin-addresses.ts";
import type { CoinFees, ReadCoinFees, UncollectableReason } from "./launchpad/coin-fees.ts";
import { PLACES } from "./launchpad/fee-accounts.ts";
import { rentMinimumOf } from "./rent.ts";
import {
  chooseSweeps,
  collectableWith,
  growthRentOf,
  isRentAcceptable,
  type Sweep,
  type Vaults,
} from "./sweeps.ts";
import { readWrappedSol, TOKEN_ACCOUNT_BYTES } from "./token-accounts.ts";
import type { WalletWithCoins, ReadWallets, WalletAccounts } from "./wallets.ts";

/** The uncollected fees of an account: in its vaults, and on its coins. */
export interface UncollectedFees {
  readonly vaults: Vaults;
  /** The sweeps that the launch platform would do, whatever they cost. */
  readonly sweeps: readonly Sweep[];
  /** The lamports at the address that its owner cannot withdraw. */
  readonly unwithdrawable: Lamports;
  /** What the address needs to be rent-exempt: it cannot receive less. */
  readonly missingRent: Lamports;
}

/** An account's balance: what a collect would move, and what its owner can withdraw. */
export interface Balance {
  /** What collects that name the same coins would move now. */
  readonly vault: Lamports;
  /** The lamports at the account's address that its owner can withdraw. */
  readonly pda: Lamports;
  /** The fees on the named coins, in their order. */
  readonly coins: readonly CoinBalance[];
}

/** The balance of an account with some of the coins that it was read with, all from one read. */
export type BalanceWith = (coins: readonly CoinAddresses[]) => Balance;

/** The fees in one place of a coin; `reason`: why collects do not move them, or null if they do. */
export type CoinBalance = Omit<CoinFees, "missingBytes">;

export type Balances = ReturnType<typeof createBalances>;

/** Reads balances and uncollected fees from the chain. A failed read throws {@link RpcError}. */
export function createBalances(needs: {
  readWallets: ReadWallets;
  readCoinFees: ReadCoinFees;
  escrowProgramId: string;
  /** The most rent that one collect may pay. */
  maxRent: Lamports;
}) {
  const { readWallets, readCoinFees, escrowProgramId, maxRent } = needs;

  /** The fees on the wallet's coins, in their order, each with the sweep that moves them. */
  function toCoinFees({ account, coins }: WalletWithCoins, accounts: WalletAccounts, vaults: Vaults) {
    return coins.flatMap((coin, i) =>
      readCoinFees(coin, accounts.coins[i]!, account.address).map((fees) => ({
        fees,
        sweep: toSweep(coin, fees, vaults),
      })),
    );
  }

  function toBalance(
    wallet: WalletWithCoins,
    accounts: WalletAccounts,
    named: readonly CoinAddresses[],
  ): Balance {
    const vaults = toVaults(accounts);
    const all = named.length === 0 ? [] : toCoinFees(wallet, accounts, vaults);
    const coins = named.flatMap(({ mint }) => all.filter(({ fees }) => fees.mint === mint));
    const chosen = chooseSweeps(
      coins.flatMap(({ sweep }) => sweep ?? []),
      vaults,
      maxRent,
    );
    return {
      vault: collectableWith(chosen, vaults),
      pda: saturatingSubtract(accounts.address.lamports, unwithdrawableIn(accounts)),
      coins: coins.map(({ fees, sweep }) => {
        const { mint, stage, quoteMint, amount } = fees;
        const isChosen = chosen.some(
          (each) => each.coin.mint === sweep?.coin.mint && each.stage === sweep.stage,
        );
        const reason = sweep && !isChosen ? refusalOf(sweep, vaults) : fees.reason;
        return { mint, stage, quoteMint, amount, reason };
      }),
    };
  }

  function refusalOf({ amount, stage, growthRent }: Sweep, { missingRent }: Vaults): UncollectableReason {
    const rent = growthRent + missingRent[PLACES[stage].vault];
    return rent > maxRent || !isRentAcceptable(rent, amount) ? "RENT_TOO_HIGH" : "BELOW_AMM_MINIMUM";
  }

  /**
   * The lamports at an address that its owner cannot withdraw: once the escrow program keeps data there, the
   * rent-exempt minimum of that data.
   */
  function unwithdrawableIn({ address: { owner, space = 0 }, rent }: WalletAccounts): Lamports {
    return owner === escrowProgramId && space > 0 ? rentMinimumOf(rent, space) : toLamports(0);
  }

  async function readWallet(wallet: WalletWithCoins): Promise<WalletAccounts> {
    const [accounts] = await readWallets([wallet]);
    if (!accounts || accounts instanceof Error) throw accounts ?? new Error("a wallet is missing");
    return accounts;
  }

  return {
    async getUncollectedFees(wallet: WalletWithCoins): Promise<UncollectedFees> {
      const accounts = await readWallet(wallet);
      const vaults = toVaults(accounts);
      const sweeps = toCoinFees(wallet, accounts, vaults).flatMap(({ sweep }) => sweep ?? []);
      return {
        vaults,
        sweeps,
        unwithdrawable: unwithdrawableIn(accounts),
        missingRent: missingRentOf(accounts),
      };
    },

    /**
     * The balances of `wallets`, in order, with any of their coins; an Error for each failed read, or the signal's reason
     * when it aborts.
     */
    async getBalances(
      wallets: readonly WalletWithCoins[],
      signal?: AbortSignal,
    ): Promise<(BalanceWith | Error)[]> {
      const read = await readWallets(wallets, signal);
      return read.map((accounts, i) =>
        accounts instanceof Error ? accounts : (coins) => toBalance(wallets[i]!, accounts, coins),
      );
    },

    /** The lamports at an account's address that its owner cannot withdraw. */
    getUnwithdrawable: async (account: AccountAddresses) =>
      unwithdrawableIn(await readWallet({ account, coins: [] })),
  };
}

function missingRentOf({ address: { lamports, space = 0 }, rent }: WalletAccounts): Lamports {
  return saturatingSubtract(rentMinimumOf(rent, space), lamports);
}

function toVaults({ creatorVault, ammVault, rent }: WalletAccounts): Vaults {
  const rentMinimum = rentMinimumOf(rent, 0);
  const tokenRentMinimum = rentMinimumOf(rent, TOKEN_ACCOUNT_BYTES);
  const wrapped = readWrappedSol(ammVault);
  return {
    creatorVault: creatorVault.lamports,
    ammVault: wrapped ?? toLamports(0),
    missingRent: {
      creatorVault: saturatingSubtract(rentMinimum, creatorVault.lamports),
      ammVault:
        wrapped === undefined ? saturatingSubtract(tokenRentMinimum, ammVault.lamports) : toLamports(0),
    },
    rentMinimum,
    tokenRentMinimum,
  };
}

/** The sweep that moves the fees to the account's vaults; undefined if none can. */
function toSweep(coin: CoinAddresses, fees: CoinFees, vaults: Vaults): Sweep | undefined {
  const { stage, amount, reason, missingBytes } = fees;
  if (reason !== null || stage === null || amount === null) return undefined;
  return { coin, stage, amount: toLamports(amount), growthRent: growthRentOf(missingBytes, vaults) };
}

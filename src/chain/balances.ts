import type { AccountAddresses } from "./addresses.ts";
import { saturatingSubtract, toLamports, type Lamports } from "./lamports.ts";
import type { CoinAddresses } from "./launchpad/coin-addresses.ts";
import {
  isShareholder,
  toCoinFees,
  type CoinFees,
  type DecodeCoin,
  type UncollectableReason,
} from "./launchpad/coin-fees.ts";
import { rentMinimumOf, type Rent } from "./rent.ts";
import type { Rpc } from "./rpc/rpc-client.ts";
import { toSharedFees, type Receivers } from "./shared-fees.ts";
import {
  chooseSweeps,
  collectableWith,
  growthRentOf,
  isRentAcceptable,
  vaultOf,
  type Sweep,
  type Vaults,
} from "./sweeps.ts";
import { readWrappedSol, TOKEN_ACCOUNT_BYTES } from "./token-accounts.ts";
import type { ReadWallets, VaultAccounts, WalletAccounts, WalletWithCoins } from "./wallets.ts";

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
  readonly coins: readonly CoinFees[];
}

/** The balance of an account with some of the coins that it was read with, all from one read. */
export type BalanceWith = (coins: readonly CoinAddresses[]) => Balance;

interface FeesWithSweep {
  readonly fees: CoinFees;
  readonly sweep: Sweep | undefined;
}

export type Balances = ReturnType<typeof createBalances>;

/** Reads balances and uncollected fees from the chain. A failed read throws {@link RpcError}. */
export function createBalances(needs: {
  readWallets: ReadWallets;
  decodeCoin: DecodeCoin;
  getAccounts: Rpc["getAccounts"];
  escrowProgramId: string;
  /** The fee payer's address. */
  feePayer: string;
  /** The least that is worth a collect. */
  minLamports: Lamports;
  /** The most rent that one collect may pay. */
  maxRent: Lamports;
}) {
  const { readWallets, decodeCoin, getAccounts, escrowProgramId, feePayer, minLamports, maxRent } = needs;

  /** The fees on the wallet's coins, in their order, each with the sweep that moves them. */
  function toFeesWithSweeps(
    { account: { address }, coins }: WalletWithCoins,
    accounts: WalletAccounts,
    vaults: Vaults,
    receivers?: Receivers,
  ): FeesWithSweep[] {
    return coins.flatMap((addresses, i): FeesWithSweep[] => {
      const coin = decodeCoin(addresses, accounts.coins[i]!);
      const { sharedVaults } = accounts.coins[i]!;
      if (!sharedVaults || !isShareholder(coin, address)) {
        return toCoinFees(coin, address).map(({ missingBytes, ...fees }) => ({
          fees,
          sweep: toSweep(addresses, fees, growthRentOf(missingBytes, vaults)),
        }));
      }
      const { rent } = accounts;
      const ofConfig = toVaults(sharedVaults, rent);
      const { fees, distribution } = toSharedFees(coin, ofConfig, {
        address,
        feePayer,
        minLamports,
        rent,
        receivers,
      });
      return fees.map((each) => ({ fees: each, sweep: distribution }));
    });
  }

  /** The other accounts that share the fees of the wallets' coins. */
  async function readReceivers(
    wallets: readonly WalletWithCoins[],
    read: readonly (WalletAccounts | Error)[],
  ): Promise<Receivers | undefined> {
    const groups = wallets.flatMap(({ account, coins }, i) => {
      const accounts = read[i]!;
      if (accounts instanceof Error) return [];
      return accounts.coins.flatMap((each, j) => {
        const shareholders = each.sharedVaults && decodeCoin(coins[j]!, each).sharing?.shareholders;
        return shareholders
          ? [shareholders.map(({ address }) => address).filter((a) => a !== account.address)]
          : [];
      });
    });
    if (groups.flat().length === 0) return undefined;
    const found = await getAccounts(groups);
    return new Map(groups.flatMap((group, i) => group.map((address, j) => [address, found[i]![j]] as const)));
  }

  function toBalance(
    wallet: WalletWithCoins,
    accounts: WalletAccounts,
    named: readonly CoinAddresses[],
    receivers: Receivers | undefined,
  ): Balance {
    const vaults = toVaults(accounts, accounts.rent);
    const pda = saturatingSubtract(accounts.address.lamports, unwithdrawableIn(accounts));
    if (named.length === 0) return { vault: collectableWith([], vaults), pda, coins: [] };
    const all = toFeesWithSweeps(wallet, accounts, vaults, receivers);
    const coins = named.flatMap(({ mint }) => all.filter(({ fees }) => fees.mint === mint));
    // All places of a shared coin have one distribution.
    const sweeps = new Set(
      coins.flatMap(({ fees, sweep }) => (fees.reason === null && sweep ? [sweep] : [])),
    );
    const chosen = chooseSweeps([...sweeps], vaults, maxRent);
    return {
      vault: collectableWith(chosen, vaults),
      pda,
      coins: coins.map(({ fees, sweep }) => {
        if (fees.reason !== null || !sweep) return fees;
        const found = chosen.find((each) => each.coin.mint === sweep.coin.mint && each.stage === sweep.stage);
        const isMoved = found && !(found.stage === "SHARED" && fees.stage === "POOL" && !found.withPool);
        return isMoved ? fees : { ...fees, reason: refusalOf(sweep, vaults) };
      }),
    };
  }

  function refusalOf(sweep: Sweep, { missingRent }: Vaults): UncollectableReason {
    const vault = vaultOf(sweep);
    const rent = sweep.growthRent + (vault ? missingRent[vault] : 0n);
    return rent > maxRent || !isRentAcceptable(rent, sweep.amount) ? "RENT_TOO_HIGH" : "BELOW_AMM_MINIMUM";
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
      const vaults = toVaults(accounts, accounts.rent);
      const sweeps = new Set(toFeesWithSweeps(wallet, accounts, vaults).flatMap(({ sweep }) => sweep ?? []));
      return {
        vaults,
        // The fees of other shareholders justify nothing.
        sweeps: [...sweeps].filter(({ stage, amount }) => stage !== "SHARED" || amount >= minLamports),
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
      const hasCoins = wallets.some(({ coins }) => coins.length > 0);
      const receivers = hasCoins
        ? await readReceivers(wallets, read).catch((error: unknown) => error as Error)
        : undefined;
      return read.map((accounts, i) => {
        if (accounts instanceof Error) return accounts;
        if (!(receivers instanceof Error))
          return (coins) => toBalance(wallets[i]!, accounts, coins, receivers);
        const isShared = accounts.coins.some(({ sharedVaults }) => sharedVaults);
        return isShared ? receivers : (coins) => toBalance(wallets[i]!, accounts, coins, undefined);
      });
    },

    /** The lamports at an account's address that its owner cannot withdraw. */
    getUnwithdrawable: async (account: AccountAddresses) =>
      unwithdrawableIn(await readWallet({ account, coins: [] })),
  };
}

function missingRentOf({ address: { lamports, space = 0 }, rent }: WalletAccounts): Lamports {
  return saturatingSubtract(rentMinimumOf(rent, space), lamports);
}

function toVaults({ creatorVault, ammVault }: VaultAccounts, rent: Rent): Vaults {
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
function toSweep(coin: CoinAddresses, fees: CoinFees, growthRent: Lamports): Sweep | undefined {
  const { stage, amount, reason } = fees;
  if (reason !== null || stage === null || stage === "SHARED" || amount === null) return undefined;
  return { coin, stage, amount: toLamports(amount), growthRent };
}

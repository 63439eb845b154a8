import { LRUCache } from "lru-cache";
import { memoize } from "../upstream/memoize.ts";
import type { AccountAddresses } from "./addresses.ts";
import { saturatingSubtract, toLamports, type Lamports } from "./lamports.ts";
import type { CoinAddresses } from "./launchpad/coin-addresses.ts";
import type { CoinFees, ReadCoinFees, UncollectableReason } from "./launchpad/coin-fees.ts";
import { PLACES } from "./launchpad/fee-accounts.ts";
import type { Account } from "./rpc/read-accounts.ts";
import type { Rpc } from "./rpc/rpc-client.ts";
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

/** The fees in one place of a coin; `reason`: why collects do not move them, or null if they do. */
export type CoinBalance = Omit<CoinFees, "missingBytes">;

/** The rent-exempt minimum changes only by a cluster-wide vote, announced weeks ahead. */
const RENT_MINIMUM_MAX_AGE_MS = 600_000;
/** Every read needs both minimums, so reads of the same second share one promise. */
const RENT_PAIR_MAX_AGE_MS = 1_000;

export type Balances = ReturnType<typeof createBalances>;

/**
 * The most account sizes whose rent-exempt minimum is cached: 0 bytes, a token account's, and the few of the escrow
 * program.
 */
const MAX_SIZES = 100;

/** Reads balances and uncollected fees from the chain. A failed read throws {@link RpcError}. */
export function createBalances(needs: {
  rpc: Rpc;
  readWallets: ReadWallets;
  readCoinFees: ReadCoinFees;
  escrowProgramId: string;
  /** The most rent that one collect may pay. */
  maxRent: Lamports;
}) {
  const { rpc, readWallets, readCoinFees, escrowProgramId, maxRent } = needs;
  const rentMinimums = new LRUCache<number, () => Promise<Lamports>, undefined>({
    max: MAX_SIZES,
    memoMethod: (space) => createRentMinimum(rpc, space),
  });
  const getRentMinimum = rentMinimums.memo(0);
  const getTokenRentMinimum = rentMinimums.memo(TOKEN_ACCOUNT_BYTES);
  const getRentMinimums = memoize(
    () => Promise.all([getRentMinimum(), getTokenRentMinimum()]),
    RENT_PAIR_MAX_AGE_MS,
  );

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
    vaults: Vaults,
    unwithdrawable: Lamports,
  ): Balance {
    const coins = toCoinFees(wallet, accounts, vaults);
    const chosen = chooseSweeps(
      coins.flatMap(({ sweep }) => sweep ?? []),
      vaults,
      maxRent,
    );
    return {
      vault: collectableWith(chosen, vaults),
      pda: saturatingSubtract(accounts.address.lamports, unwithdrawable),
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

  const holdsEscrowData = ({ owner, space = 0 }: Account) => owner === escrowProgramId && space > 0;

  /**
   * The lamports at an address that its owner cannot withdraw: once the escrow program keeps data there, the
   * rent-exempt minimum of that data.
   */
  async function unwithdrawableIn(account: Account): Promise<Lamports> {
    return holdsEscrowData(account) ? rentMinimums.memo(account.space!)() : toLamports(0);
  }

  async function unwithdrawableOrError(wallet: WalletAccounts | Error): Promise<Lamports | Error> {
    return wallet instanceof Error
      ? wallet
      : unwithdrawableIn(wallet.address).catch((error: unknown) => error as Error);
  }

  async function readWallet(wallet: WalletWithCoins): Promise<WalletAccounts> {
    const [accounts] = await readWallets([wallet]);
    if (!accounts || accounts instanceof Error) throw accounts ?? new Error("a wallet is missing");
    return accounts;
  }

  return {
    async getUncollectedFees(wallet: WalletWithCoins): Promise<UncollectedFees> {
      const rents = getRentMinimums();
      const accounts = await readWallet(wallet);
      const [rentMinimum, tokenRentMinimum] = await rents;
      const vaults = toVaults(accounts, rentMinimum, tokenRentMinimum);
      const sweeps = toCoinFees(wallet, accounts, vaults).flatMap(({ sweep }) => sweep ?? []);
      return { vaults, sweeps, unwithdrawable: await unwithdrawableIn(accounts.address) };
    },

    /**
     * The balances of `wallets`, in order; an Error for each failed read, or the signal's reason when it aborts.
     */
    async getBalances(
      wallets: readonly WalletWithCoins[],
      signal?: AbortSignal,
    ): Promise<(Balance | Error)[]> {
      const rents = getRentMinimums();
      const read = await readWallets(wallets, signal);
      const [rentMinimum, tokenRentMinimum] = await rents;
      const unwithdrawable = read.some(
        (wallet) => !(wallet instanceof Error) && holdsEscrowData(wallet.address),
      )
        ? await Promise.all(read.map(unwithdrawableOrError))
        : [];
      return read.map((accounts, i) => {
        if (accounts instanceof Error) return accounts;
        const kept = unwithdrawable[i] ?? toLamports(0);
        if (kept instanceof Error) return kept;
        return toBalance(wallets[i]!, accounts, toVaults(accounts, rentMinimum, tokenRentMinimum), kept);
      });
    },

    /** The lamports at an account's address that its owner cannot withdraw. */
    getUnwithdrawable: async (account: AccountAddresses) =>
      unwithdrawableIn((await readWallet({ account, coins: [] })).address),

    /** The rent-exempt minimum of an account without data. */
    getRentMinimum,

    /** Reads the rent-exempt minimums before the first lookup. Never rejects, because the lookup retries. */
    async warmUp(): Promise<void> {
      await Promise.allSettled([getRentMinimums()]);
    },
  };
}

function toVaults(
  { creatorVault, ammVault }: WalletAccounts,
  rentMinimum: Lamports,
  tokenRentMinimum: Lamports,
): Vaults {
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

/** Caches the rent-exempt minimum of accounts of `space` bytes; keeps the last value when a read fails. */
function createRentMinimum(rpc: Rpc, space: number): () => Promise<Lamports> {
  let last: Lamports | undefined;
  return memoize(async () => {
    try {
      last = await rpc.getMinimumBalanceForRentExemption(space);
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last;
  }, RENT_MINIMUM_MAX_AGE_MS);
}

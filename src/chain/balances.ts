import { memoize } from "../upstream/memoize.ts";
import type { ReadWallets, WalletAccounts } from "./wallets.ts";
import type { AccountAddresses } from "./addresses.ts";
import { saturatingSubtract, toLamports, type Lamports } from "./lamports.ts";
import type { Rpc } from "./rpc/rpc-client.ts";
import { readWrappedSol, TOKEN_ACCOUNT_BYTES } from "./token-accounts.ts";

/** The uncollected fees in an account's vaults. */
export interface UncollectedFees {
  /** What a collect would move now: both vaults, less the rent-exempt minimum of the creator vault. */
  readonly collectable: Lamports;
  /** The part of `collectable` in the AMM's vault; 0 when it is too little for the AMM to move. */
  readonly inAmm: Lamports;
  /** All lamports of the creator vault, its rent-exempt minimum included. */
  readonly inCreatorVault: Lamports;
}

/** An account's uncollected fees and the lamports at its address. */
export interface Balance {
  /** What a collect would move now. */
  readonly vault: Lamports;
  /** The lamports at the account's address. */
  readonly pda: Lamports;
}

/** The rent-exempt minimum changes only by a cluster-wide vote, announced weeks ahead. */
const RENT_MINIMUM_MAX_AGE_MS = 600_000;

export type Balances = ReturnType<typeof createBalances>;

/** Reads balances and uncollected fees from the chain. Every read fails with {@link RpcError}. */
export function createBalances(rpc: Rpc, readWallets: ReadWallets) {
  const getRentMinimum = createRentMinimum(rpc, 0);
  const getTokenRentMinimum = createRentMinimum(rpc, TOKEN_ACCOUNT_BYTES);

  function toUncollectedFees(
    { creatorVault, ammVault }: WalletAccounts,
    rentMinimum: Lamports,
    tokenRentMinimum: Lamports,
  ): UncollectedFees {
    const amount = readWrappedSol(ammVault);
    // The AMM does not move an amount below the rent of a token account.
    const inAmm = amount >= tokenRentMinimum ? amount : toLamports(0);
    const collectable = saturatingSubtract(toLamports(creatorVault.lamports + inAmm), rentMinimum);
    return { collectable, inAmm, inCreatorVault: creatorVault.lamports };
  }

  return {
    async getUncollectedFees(account: AccountAddresses): Promise<UncollectedFees> {
      const [[wallet], rentMinimum, tokenRentMinimum] = await Promise.all([
        readWallets([account]),
        getRentMinimum(),
        getTokenRentMinimum(),
      ]);
      if (!wallet || wallet instanceof Error) throw wallet ?? new Error("a wallet is missing");
      return toUncollectedFees(wallet, rentMinimum, tokenRentMinimum);
    },

    /** The balances of `accounts`, in order; an Error for each failed read. */
    async getBalances(
      accounts: readonly AccountAddresses[],
      signal: AbortSignal,
    ): Promise<(Balance | Error)[]> {
      const [wallets, rentMinimum, tokenRentMinimum] = await Promise.all([
        readWallets(accounts, signal),
        getRentMinimum(),
        getTokenRentMinimum(),
      ]);
      return wallets.map((wallet) => {
        if (wallet instanceof Error) return wallet;
        const { collectable } = toUncollectedFees(wallet, rentMinimum, tokenRentMinimum);
        return { vault: collectable, pda: wallet.address.lamports };
      });
    },

    /** The rent-exempt minimum of an account without data. */
    getRentMinimum,

    /** Reads the rent-exempt minimums before the first lookup. Never rejects, because the lookup retries. */
    async warmUp(): Promise<void> {
      await Promise.allSettled([getRentMinimum(), getTokenRentMinimum()]);
    },
  };
}

/** Caches the rent-exempt minimum of accounts of `space` bytes; serves the last one while it cannot be read. */
function createRentMinimum(rpc: Rpc, space: number): () => Promise<Lamports> {
  const read = memoize(() => rpc.getMinimumBalanceForRentExemption(space), RENT_MINIMUM_MAX_AGE_MS);
  let last: Lamports | undefined;
  return async () => {
    try {
      last = await read();
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last;
  };
}

import { memoize } from "../upstream/memoize.ts";
import type { ReadWallets, WalletAccounts } from "./wallets.ts";
import type { AccountAddresses } from "./addresses.ts";
import { subtractToZero, toLamports, type Lamports } from "./lamports.ts";
import type { Rpc } from "./rpc/rpc-client.ts";
import { readWrappedSol, TOKEN_ACCOUNT_BYTES } from "./token-accounts.ts";

/** The fees that wait in an account's vaults. */
export interface WaitingFees {
  /** What a collect would move now: the fees of both vaults, without the rent-exempt minimum of the first. */
  readonly collectable: Lamports;
  /** The part of `collectable` in the AMM's vault; 0 when the AMM would move nothing. */
  readonly inAmm: Lamports;
  /** All lamports of the creator vault, its rent-exempt minimum included. */
  readonly inCreatorVault: Lamports;
}

/** An account's waiting fees and the lamports at its address. */
export interface Balance {
  /** What a collect would move now. */
  readonly vault: Lamports;
  /** The lamports at the account's address. */
  readonly pda: Lamports;
}

/** The minimum changes by a vote of the whole cluster, announced weeks before. */
const RENT_MINIMUM_MAX_AGE_MS = 600_000;

export type Balances = ReturnType<typeof createBalances>;

/** Reads balances and waiting fees from the chain. Every read fails with {@link RpcError}. */
export function createBalances(rpc: Rpc, readWallets: ReadWallets) {
  const getRentMinimum = createRentMinimum(rpc, 0);
  const getTokenRentMinimum = createRentMinimum(rpc, TOKEN_ACCOUNT_BYTES);

  function toWaitingFees(
    { creatorVault, ammVault }: WalletAccounts,
    rentMinimum: Lamports,
    tokenRentMinimum: Lamports,
  ): WaitingFees {
    const amount = readWrappedSol(ammVault);
    // The AMM does not move an amount below the rent of a token account.
    const inAmm = amount >= tokenRentMinimum ? amount : toLamports(0);
    const collectable = subtractToZero(toLamports(creatorVault.lamports + inAmm), rentMinimum);
    return { collectable, inAmm, inCreatorVault: creatorVault.lamports };
  }

  return {
    async getWaitingFees(account: AccountAddresses): Promise<WaitingFees> {
      const [[wallet], rentMinimum, tokenRentMinimum] = await Promise.all([
        readWallets([account]),
        getRentMinimum(),
        getTokenRentMinimum(),
      ]);
      if (!wallet || wallet instanceof Error) throw wallet ?? new Error("a wallet is missing");
      return toWaitingFees(wallet, rentMinimum, tokenRentMinimum);
    },

    /** The balances of accounts, in their order; an Error for each that cannot be read. */
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
        const { collectable } = toWaitingFees(wallet, rentMinimum, tokenRentMinimum);
        return { vault: collectable, pda: wallet.address.lamports };
      });
    },

    /** The lamports that an account without data must keep. */
    getRentMinimum,

    /** Reads the rent-exempt minimums ahead of the first lookup; never rejects: the lookup tries again. */
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

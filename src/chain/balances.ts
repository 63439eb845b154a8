import { memoize } from "../upstream/memoize.ts";
import type { ReadAccounts } from "./accounts.ts";
import type { AccountAddresses } from "./addresses.ts";
import { saturatingSubtract, toLamports, type Lamports } from "./lamports.ts";
import type { Account, Rpc } from "./rpc/rpc-client.ts";
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

/** Reads balances and uncollected fees from the chain. A failed read throws {@link RpcError}. */
export function createBalances(rpc: Rpc, readAccounts: ReadAccounts) {
  const getRentMinimum = createRentMinimum(rpc, 0);
  const getTokenRentMinimum = createRentMinimum(rpc, TOKEN_ACCOUNT_BYTES);

  function toUncollectedFees(
    vault: Account,
    ammVault: Account,
    rentMinimum: Lamports,
    tokenRentMinimum: Lamports,
  ): UncollectedFees {
    const amount = readWrappedSol(ammVault);
    // The AMM does not move an amount below the rent of a token account.
    const inAmm = amount >= tokenRentMinimum ? amount : toLamports(0);
    const collectable = saturatingSubtract(toLamports(vault.lamports + inAmm), rentMinimum);
    return { collectable, inAmm, inCreatorVault: vault.lamports };
  }

  return {
    async getUncollectedFees({ creatorVault, ammVault }: AccountAddresses): Promise<UncollectedFees> {
      const [[vault, amm], rentMinimum, tokenRentMinimum] = await Promise.all([
        readAccounts([creatorVault, ammVault]),
        getRentMinimum(),
        getTokenRentMinimum(),
      ]);
      return toUncollectedFees(assertRead(vault), assertRead(amm), rentMinimum, tokenRentMinimum);
    },

    /** The balances of `accounts`, in order; an Error for each failed read. */
    async getBalances(
      accounts: readonly AccountAddresses[],
      signal: AbortSignal,
    ): Promise<(Balance | Error)[]> {
      const addresses = accounts.flatMap(({ creatorVault, ammVault, address }) => [
        creatorVault,
        ammVault,
        address,
      ]);
      const [read, rentMinimum, tokenRentMinimum] = await Promise.all([
        readAccounts(addresses, signal),
        getRentMinimum(),
        getTokenRentMinimum(),
      ]);
      return accounts.map((_, i) => {
        const [vault, amm, pda] = read.slice(3 * i, 3 * i + 3);
        if (vault instanceof Error) return vault;
        if (amm instanceof Error) return amm;
        if (pda instanceof Error) return pda;
        const { collectable } = toUncollectedFees(vault!, amm!, rentMinimum, tokenRentMinimum);
        return { vault: collectable, pda: pda!.lamports };
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

function assertRead(account: Account | Error | undefined): Account {
  if (account === undefined || account instanceof Error) throw account ?? new Error("an account is missing");
  return account;
}

/** Caches the rent-exempt minimum of accounts of `space` bytes; returns the last value when a read fails. */
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

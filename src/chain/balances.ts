import { LRUCache } from "lru-cache";
import { memoize } from "../upstream/memoize.ts";
import type { AccountAddresses } from "./addresses.ts";
import { saturatingSubtract, toLamports, type Lamports } from "./lamports.ts";
import type { Account } from "./rpc/read-accounts.ts";
import type { Rpc } from "./rpc/rpc-client.ts";
import { readWrappedSol, TOKEN_ACCOUNT_BYTES } from "./token-accounts.ts";
import type { ReadWallets, WalletAccounts } from "./wallets.ts";

/** The uncollected fees in an account's vaults. */
export interface UncollectedFees {
  /** What a collect would move now: both vaults, less the rent-exempt minimum of the creator vault. */
  readonly collectable: Lamports;
  /**
   * The lamports in the AMM's vault; 0 when they are too few for the AMM to move. Can exceed `collectable`, when
   * the creator vault keeps some of them as its rent-exempt minimum.
   */
  readonly inAmm: Lamports;
  /** All lamports of the creator vault, its rent-exempt minimum included. */
  readonly inCreatorVault: Lamports;
  /** The lamports at the address that its owner cannot withdraw. */
  readonly reserved: Lamports;
}

/** An account's balance: what a collect would move, and what its owner can withdraw. */
export interface Balance {
  /** What a collect would move now. */
  readonly vault: Lamports;
  /** The lamports at the account's address that its owner can withdraw. */
  readonly pda: Lamports;
}

/** The rent-exempt minimum changes only by a cluster-wide vote, announced weeks ahead. */
const RENT_MINIMUM_MAX_AGE_MS = 600_000;

export type Balances = ReturnType<typeof createBalances>;

/**
 * The most account sizes whose rent-exempt minimum is cached: 0 bytes, a token account's, and the few of the escrow
 * program.
 */
const MAX_SIZES = 100;

/** Reads balances and uncollected fees from the chain. A failed read throws {@link RpcError}. */
export function createBalances(needs: { rpc: Rpc; readWallets: ReadWallets; escrowProgramId: string }) {
  const { rpc, readWallets, escrowProgramId } = needs;
  const rentMinimums = new LRUCache<number, () => Promise<Lamports>, undefined>({
    max: MAX_SIZES,
    memoMethod: (space) => createRentMinimum(rpc, space),
  });
  const getRentMinimum = () => rentMinimums.memo(0)();
  const getTokenRentMinimum = () => rentMinimums.memo(TOKEN_ACCOUNT_BYTES)();

  function toUncollectedFees(
    { creatorVault, ammVault }: WalletAccounts,
    rentMinimum: Lamports,
    tokenRentMinimum: Lamports,
  ): Omit<UncollectedFees, "reserved"> {
    const amount = readWrappedSol(ammVault);
    // The AMM does not move an amount below the rent of a token account.
    const inAmm = amount >= tokenRentMinimum ? amount : toLamports(0);
    const collectable = saturatingSubtract(toLamports(creatorVault.lamports + inAmm), rentMinimum);
    return { collectable, inAmm, inCreatorVault: creatorVault.lamports };
  }

  const holdsEscrowData = ({ owner, space = 0 }: Account) => owner === escrowProgramId && space > 0;

  /**
   * The lamports at an address that its owner cannot withdraw: once the escrow program keeps data there, the
   * rent-exempt minimum of that data.
   */
  async function reservedIn(account: Account): Promise<Lamports> {
    return holdsEscrowData(account) ? rentMinimums.memo(account.space!)() : toLamports(0);
  }

  async function reservedOrError(wallet: WalletAccounts | Error): Promise<Lamports | Error> {
    return wallet instanceof Error
      ? wallet
      : reservedIn(wallet.address).catch((error: unknown) => error as Error);
  }

  async function readWallet(account: AccountAddresses): Promise<WalletAccounts> {
    const [wallet] = await readWallets([account]);
    if (!wallet || wallet instanceof Error) throw wallet ?? new Error("a wallet is missing");
    return wallet;
  }

  return {
    async getUncollectedFees(account: AccountAddresses): Promise<UncollectedFees> {
      const [wallet, rentMinimum, tokenRentMinimum] = await Promise.all([
        readWallet(account),
        getRentMinimum(),
        getTokenRentMinimum(),
      ]);
      const reserved = await reservedIn(wallet.address);
      return { ...toUncollectedFees(wallet, rentMinimum, tokenRentMinimum), reserved };
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
      const reserved = wallets.some((wallet) => !(wallet instanceof Error) && holdsEscrowData(wallet.address))
        ? await Promise.all(wallets.map(reservedOrError))
        : [];
      return wallets.map((wallet, i) => {
        if (wallet instanceof Error) return wallet;
        const kept = reserved[i] ?? toLamports(0);
        if (kept instanceof Error) return kept;
        const { collectable } = toUncollectedFees(wallet, rentMinimum, tokenRentMinimum);
        return { vault: collectable, pda: saturatingSubtract(wallet.address.lamports, kept) };
      });
    },

    /** The lamports at an account's address that its owner cannot withdraw. */
    getReserved: async (account: AccountAddresses) => reservedIn((await readWallet(account)).address),

    /** The rent-exempt minimum of an account without data. */
    getRentMinimum,

    /** Reads the rent-exempt minimums before the first lookup. Never rejects, because the lookup retries. */
    async warmUp(): Promise<void> {
      await Promise.allSettled([getRentMinimum(), getTokenRentMinimum()]);
    },
  };
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

import { createRecent } from "../upstream/memoize.ts";
import { TOKEN_AMOUNT, type ReadAccounts } from "./accounts.ts";
import type { AccountAddresses } from "./addresses.ts";
import { subtractToZero, toLamports, type Lamports } from "./lamports.ts";
import type { Account, Rpc } from "./rpc/rpc-client.ts";

/** What waits for an account. */
export interface Fees {
  /** What a collect would move now: what waits in both vaults, above the rent-exempt minimum of the first. */
  readonly collectable: Lamports;
  /** The part of it that waits in the AMM's vault; 0 when the AMM would move nothing. */
  readonly inAmm: Lamports;
  /** All lamports of the creator vault, the rent-exempt minimum among them. */
  readonly inCreatorVault: Lamports;
}

/** What waits for an account, and what it has. */
export interface Balance {
  /** What a collect would move now. */
  readonly vault: Lamports;
  /** The lamports held by the account's address. */
  readonly pda: Lamports;
}

/** The size of a token account. Source: the Token program's account layout. */
const TOKEN_ACCOUNT_BYTES = 165;

/** The minimum changes by a vote of the whole cluster, announced weeks before. */
const RENT_MINIMUM_MAX_AGE_MS = 600_000;

export type Vaults = ReturnType<typeof createVaults>;

/** Reads what accounts have and what waits for them. Everything fails with {@link RpcError}. */
export function createVaults(rpc: Rpc, readAccounts: ReadAccounts) {
  const getRentMinimum = createRentMinimum(rpc, 0);
  const getTokenRentMinimum = createRentMinimum(rpc, TOKEN_ACCOUNT_BYTES);

  /** What waits, as its vaults and the minimums say. */
  function toFees(vault: Account, ammVault: Account, minimum: Lamports, tokenMinimum: Lamports): Fees {
    const amount = tokenAmount(ammVault);
    // The AMM leaves an amount below its token account's rent where it is.
    const inAmm = amount >= tokenMinimum ? amount : toLamports(0);
    const collectable = subtractToZero(toLamports(vault.lamports + inAmm), minimum);
    return { collectable, inAmm, inCreatorVault: vault.lamports };
  }

  return {
    /** What waits in the vaults of an account. */
    async getFees({ creatorVault, ammVault }: AccountAddresses): Promise<Fees> {
      const [[vault, amm], minimum, tokenMinimum] = await Promise.all([
        readAccounts([creatorVault, ammVault]),
        getRentMinimum(),
        getTokenRentMinimum(),
      ]);
      return toFees(read(vault), read(amm), minimum, tokenMinimum);
    },

    /** The balances of accounts, or an Error for each that cannot be read. */
    async getBalances(
      accounts: readonly AccountAddresses[],
      signal: AbortSignal,
    ): Promise<(Balance | Error)[]> {
      const addresses = accounts.flatMap(({ creatorVault, ammVault, address }) => [
        creatorVault,
        ammVault,
        address,
      ]);
      const [found, minimum, tokenMinimum] = await Promise.all([
        readAccounts(addresses, signal),
        getRentMinimum(),
        getTokenRentMinimum(),
      ]);
      return accounts.map((_, i) => {
        const [vault, amm, pda] = found.slice(3 * i, 3 * i + 3);
        if (vault instanceof Error) return vault;
        if (amm instanceof Error) return amm;
        if (pda instanceof Error) return pda;
        const { collectable } = toFees(vault!, amm!, minimum, tokenMinimum);
        return { vault: collectable, pda: pda!.lamports };
      });
    },

    /** The lamports that an account without data cannot do without. */
    getRentMinimum,

    /** Reads what is read but rarely ahead of the first lookup; when that fails, the lookup tries again. */
    async warmUp(): Promise<void> {
      await Promise.allSettled([getRentMinimum(), getTokenRentMinimum()]);
    },
  };
}

function read(account: Account | Error | undefined): Account {
  if (account === undefined || account instanceof Error) throw account ?? new Error("an account is missing");
  return account;
}

function tokenAmount({ data }: Account): Lamports {
  return toLamports(data.length === TOKEN_AMOUNT.length ? data.readBigUInt64LE() : 0n);
}

/** Reads the rent-exempt minimum of accounts of `space` bytes, and believes it for a while, longer while it cannot be read. */
function createRentMinimum(rpc: Rpc, space: number): () => Promise<Lamports> {
  const read = createRecent(() => rpc.getMinimumBalanceForRentExemption(space), RENT_MINIMUM_MAX_AGE_MS);
  let known: Lamports | undefined;
  return async () => {
    try {
      known = await read();
    } catch (error) {
      if (known === undefined) throw error;
    }
    return known;
  };
}

import { createRecent } from "../recent.ts";
import { TOKEN_AMOUNT, type ReadAccount } from "./accounts.ts";
import type { AccountAddresses } from "./addresses.ts";
import { subtractToZero, toLamports, type Lamports } from "./lamports.ts";
import type { Account, Rpc } from "./rpc.ts";

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

/** Reads what accounts have and what waits for them. Everything rejects with {@link RpcError}. */
export function createVaults(rpc: Rpc) {
  const systemMinimum = createRentMinimum(rpc, 0);
  const tokenMinimum = createRentMinimum(rpc, TOKEN_ACCOUNT_BYTES);

  /** What waits in the vaults of an account. */
  async function getFees(
    { creatorVault, ammVault }: AccountAddresses,
    readAccount: ReadAccount,
  ): Promise<Fees> {
    const [vault, amm, minimum, ammMinimum] = await Promise.all([
      readAccount(creatorVault),
      readAccount(ammVault),
      systemMinimum(),
      tokenMinimum(),
    ]);
    const amount = tokenAmount(amm);
    // The AMM leaves an amount below its token account's rent where it is.
    const inAmm = amount >= ammMinimum ? amount : toLamports(0);
    const collectable = subtractToZero(toLamports(vault.lamports + inAmm), minimum);
    return { collectable, inAmm, inCreatorVault: vault.lamports };
  }

  return {
    getFees,
    /** The lamports that an account without data cannot do without. */
    getRentMinimum: systemMinimum,

    /** The balance of an account. */
    async getBalance(account: AccountAddresses, readAccount: ReadAccount): Promise<Balance> {
      const [{ collectable }, { lamports }] = await Promise.all([
        getFees(account, readAccount),
        readAccount(account.address),
      ]);
      return { vault: collectable, pda: lamports };
    },

    /** Reads what is read but rarely ahead of the first lookup; when that fails, the lookup tries again. */
    async warmUp(): Promise<void> {
      await Promise.allSettled([systemMinimum(), tokenMinimum()]);
    },
  };
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

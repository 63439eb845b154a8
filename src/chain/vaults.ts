import type { AccountAddresses } from "./addresses.ts";
import { subtractToZero, type Lamports } from "./lamports.ts";
import type { Rpc } from "./rpc.ts";

/** What waits for an account, and what it has. */
export interface Balance {
  /** What a collect would move now: the creator vault's lamports above the rent-exempt minimum. */
  readonly vault: Lamports;
  /** The lamports held by the account's address. */
  readonly pda: Lamports;
}

/** The minimum changes by a vote of the whole cluster, announced weeks before. */
const RENT_MINIMUM_MAX_AGE_MS = 600_000;

export type Vaults = ReturnType<typeof createVaults>;

/** Reads what accounts have and what waits for them. */
export function createVaults(rpc: Rpc) {
  let rentMinimum: { readonly value: Promise<Lamports>; readonly readAt: number } | undefined;

  /** The rent-exempt minimum of an account without data, which a vault keeps for itself. */
  function getRentMinimum(): Promise<Lamports> {
    const now = performance.now();
    if (!rentMinimum || now - rentMinimum.readAt > RENT_MINIMUM_MAX_AGE_MS) {
      const reading = { value: rpc.getMinimumBalanceForRentExemption(0), readAt: now };
      rentMinimum = reading;
      reading.value.catch(() => {
        if (rentMinimum === reading) rentMinimum = undefined;
      });
    }
    return rentMinimum.value;
  }

  return {
    getRentMinimum,

    /**
     * The balance of an account. `readLamports` gives one address's lamports; a loader merges what many
     * callers ask of it in the same moment. Throws {@link RpcError}.
     */
    async getBalance(
      { address, creatorVault }: AccountAddresses,
      readLamports: (address: string) => Promise<Lamports>,
    ): Promise<Balance> {
      const [held, pda, minimum] = await Promise.all([
        readLamports(creatorVault),
        readLamports(address),
        getRentMinimum(),
      ]);
      return { vault: subtractToZero(held, minimum), pda };
    },
  };
}

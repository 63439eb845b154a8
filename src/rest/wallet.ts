/** What REST shows of a wallet: a fragment of GraphQL. `mints` are the coins that the caller names. */
export const walletFragment = (mints = "") => /* GraphQL */ `
  fragment RestWallet on Wallet {
    handle
    socialId
    address
    derivation {
      program
      seeds
      bump
    }
    balance${mints} {
      vault
      pda
      total
      withdrawable
    }
    lamports: balance${mints} {
      vault: vaultLamports
      pda: pdaLamports
      total: totalLamports
      withdrawable: withdrawableLamports
    }
    profile {
      name
      verified
      followers
      pictureUrl
    }
  }
`;

type Amounts = Readonly<Record<"vault" | "pda" | "total" | "withdrawable", string>>;

/** The data of the fragment. */
export interface RestWallet {
  readonly handle: string;
  readonly socialId: string;
  readonly address: string;
  readonly balance: Amounts;
  readonly lamports: Amounts;
  readonly profile: Readonly<Record<string, unknown>>;
}

/** A wallet as REST shows it: a profile has no null. */
export function toRestWallet<Wallet extends RestWallet>({ lamports, ...wallet }: Wallet) {
  const present = Object.entries(wallet.profile).filter(([, value]) => value !== null);
  return {
    ...wallet,
    balance: { ...wallet.balance, lamports },
    profile: Object.fromEntries(present),
  };
}

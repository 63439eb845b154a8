import type { Caller } from "../../fairness/caller.ts";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import type { Failures } from "./failures.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import {
  toCoinFees,
  type CoinFees,
  type SweepableFees,
  type UncollectableReason,
} from "../launchpad/coin-fees.ts";
import { rentMinimumOf } from "../primitives/rent.ts";
import { toSharedFees } from "./shared-fees.ts";
import {
  chooseSweeps,
  collectableWith,
  isRentAcceptable,
  rentWith,
  type Sweep,
  type Vaults,
} from "../launchpad/choose-sweeps.ts";
import type { ReadWallets, WalletState, WalletWithCoins } from "./wallets.ts";

export interface UncollectedFees {
  readonly vaults: Vaults;
  /**
   * The sweeps that the launch platform allows, whatever their rent. Excludes distributions that
   * pay too little.
   */
  readonly sweeps: readonly Sweep[];
  /** All fees on the named coins, with the reasons that a lookup shows. */
  readonly coins: readonly SweepableFees[];
  /** The lamports that the account's owner cannot withdraw from the address. */
  readonly unwithdrawable: Lamports;
  /**
   * How many lamports the address lacks to be rent-exempt. A smaller transfer to the address fails.
   */
  readonly missingRent: Lamports;
  /** In which slot all was read. */
  readonly slot: number;
}

/** What a collect reads. */
export interface CollectedWallet extends WalletWithCoins {
  /** If no transaction would move as much for the account, none is sent. */
  readonly minimum?: Lamports | undefined;
}

export interface Balance {
  /** What a collect would move to the address now, if it names the coins of `coins`. */
  readonly vault: Lamports;
  /** The lamports that the account's owner can withdraw from the address. */
  readonly pda: Lamports;
  /** The fees on the named coins, in the coins' order. */
  readonly coins: readonly CoinFees[];
}

/**
 * Returns an account's balance with the fees on `coins`, which must have been read with the
 * account.
 */
export type BalanceWith = (coins: readonly CoinAddresses[]) => Balance;

export type Balances = ReturnType<typeof createBalances>;

/** Reads balances and uncollected fees from the chain. A failed read throws {@link RpcError}. */
export function createBalances(needs: {
  readWallets: ReadWallets;
  /**
   * Why earlier collects could not move fees. Balances show these reasons; collects ignore them and
   * try again.
   */
  failures: Pick<Failures, "reasonOf">;
  escrowProgramId: string;
  feePayer: string;
  minCollectLamports: Lamports;
  /** The most rent that one collect may pay. */
  maxRentLamports: Lamports;
}) {
  const { readWallets, failures, escrowProgramId, feePayer, minCollectLamports, maxRentLamports } =
    needs;

  /** The fees on a wallet's coins, in the coins' order. */
  function toFees({ address }: AccountAddresses, { coins }: WalletState): SweepableFees[] {
    return coins.flatMap((coin) => {
      const { sharing, places } = coin;
      if (!sharing?.shareholders.some((shareholder) => shareholder.address === address))
        return toCoinFees(coin, address);
      // A curve can still name a shareholder itself.
      const own = places.filter(({ account }) => account.creator === address);
      const others = places.filter((place) => !own.includes(place));
      return [
        ...(own.length > 0 ? toCoinFees({ ...coin, places: own }, address) : []),
        ...toSharedFees({ ...coin, places: others }, sharing, {
          address,
          feePayer,
          minCollectLamports,
          maxRentLamports,
          reasonFound: (distributable) => failures.reasonOf(coin.addresses.mint, distributable),
        }),
      ];
    });
  }

  function toBalanceWith({ account }: WalletWithCoins, state: WalletState): BalanceWith {
    const { vaults } = state;
    const all = toFees(account, state);
    const pda = saturatingSubtract(
      state.address?.lamports ?? toLamports(0),
      unwithdrawableIn(state),
    );
    return (namedCoins) => {
      const namedFees = namedCoins.flatMap(({ mint }) => all.filter((fees) => fees.mint === mint));
      const { chosenSweeps, coins } = judge(namedFees, vaults);
      return { vault: collectableWith(chosenSweeps, vaults), pda, coins };
    };
  }

  /** Chooses what collects of all these fees would move, and adds why the others stay. */
  function judge(coins: readonly SweepableFees[], vaults: Vaults) {
    // All entries of a shared coin have the same sweep.
    const sweeps = new Set(
      coins.flatMap(({ reason, sweep }) => (reason === null && sweep ? [sweep] : [])),
    );
    const chosenSweeps = chooseSweeps([...sweeps], vaults, maxRentLamports);
    const judgedCoins = coins.map((fees) => {
      const { sweep } = fees;
      if (fees.reason !== null || !sweep) return fees;
      const isMoved = chosenSweeps.some(
        (each) => each.coin.mint === sweep.coin.mint && each.stage === sweep.stage,
      );
      return isMoved ? fees : { ...fees, reason: refusalOf(sweep, vaults) };
    });
    return { chosenSweeps, coins: judgedCoins };
  }

  function refusalOf(sweep: Sweep, { missingRent }: Vaults): UncollectableReason {
    const rent = rentWith(missingRent, sweep);
    return isRentAcceptable(rent, sweep.amount, maxRentLamports)
      ? "BELOW_AMM_MINIMUM"
      : "RENT_TOO_HIGH";
  }

  /**
   * Once the escrow program keeps data at an address, the rent-exempt minimum of that data cannot
   * be withdrawn.
   */
  function unwithdrawableIn({ address, rent }: WalletState): Lamports {
    const { owner, space = 0 } = address ?? {};
    return owner === escrowProgramId && space > 0 ? rentMinimumOf(rent, space) : toLamports(0);
  }

  async function readWallet(wallet: WalletWithCoins): Promise<WalletState> {
    const [state] = await readWallets([wallet]);
    if (state instanceof Error) throw state;
    return state!;
  }

  return {
    async getUncollectedFees(wallet: WalletWithCoins): Promise<UncollectedFees> {
      const state = await readWallet(wallet);
      const { vaults, slot, rent } = state;
      const { lamports = toLamports(0), space = 0 } = state.address ?? {};
      const fees = toFees(wallet.account, state);
      const sweeps = new Set(fees.flatMap(({ sweep }) => sweep ?? []));
      return {
        vaults,
        coins: judge(fees, vaults).coins,
        // Only this account's share can justify the cost of a collect.
        sweeps: [...sweeps].filter(
          ({ stage, amount }) => stage !== "SHARED" || amount >= minCollectLamports,
        ),
        unwithdrawable: unwithdrawableIn(state),
        missingRent: saturatingSubtract(rentMinimumOf(rent, space), lamports),
        slot,
      };
    },

    /**
     * Returns each wallet's balance or error, in order. After an abort, unread wallets get the
     * signal's reason. See {@link ReadWallets}.
     */
    async getBalances(
      wallets: readonly WalletWithCoins[],
      caller?: Caller,
    ): Promise<(BalanceWith | Error)[]> {
      const states = await readWallets(wallets, caller);
      return states.map((state, i) =>
        state instanceof Error ? state : toBalanceWith(wallets[i]!, state),
      );
    },

    /** The lamports that an account's owner cannot withdraw from its address. */
    getUnwithdrawable: async (account: AccountAddresses) =>
      unwithdrawableIn(await readWallet({ account, coins: [] })),
  };
}

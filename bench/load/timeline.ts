import { onLanded, setRent } from "../../test/support/chain-levers.ts";
import { RENT_SYSVAR } from "../../src/chain/primitives/rent.ts";
import type { CoinAddresses } from "../../src/chain/launchpad/coin-addresses.ts";
import type { Chain, ChainAccount } from "../../src/sandbox/chain/chain.ts";
import type { WireTransaction } from "../../src/sandbox/chain/wire-transaction.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { ammVaultOf, feesAt } from "../../test/support/coin-balances.ts";
import { partOf, type SharedCoin } from "./shared-coins.ts";

/** Amounts below this are not collected: the default of MIN_COLLECT_LAMPORTS. */
const MIN_COLLECT_LAMPORTS = 100_000n;
/** Collects leave smaller amounts in the AMM's vault. */
const MIN_IN_AMM = 5_000n;
/** A collect moves at least this many times the rent that it pays. */
const AMOUNT_PER_RENT = 50n;

/** The fees of a coin, in lamports. */
interface CoinAmounts {
  /** The fees on the curve and in the pool; both are 0 if the coin's fees are shared. */
  readonly curve: bigint;
  readonly pool: bigint;
  /**
   * What a distribution would pay all shareholders together; 0 if the coin's fees are not shared.
   */
  readonly distributable: bigint;
  /** The rent that a distribution would cost. */
  readonly rent: bigint;
}

/** The fees of a coin for one of its accounts, in lamports. */
interface CoinState extends Pick<CoinAmounts, "curve" | "pool"> {
  readonly mint: string;
  /**
   * What a distribution would pay the account; 0 if a collect would not distribute, or the fees are
   * not shared.
   */
  readonly share: bigint;
}

/** An account's fees and balance from one change to the next. */
export interface State {
  /** When the state began, in milliseconds since 1970; 0 for the first state. */
  readonly at: number;
  readonly slot: number;
  /** The signature of the transaction that caused the state; "" if none did. */
  readonly signature: string;
  /** The rent-exempt minimum of an account without data, in lamports. It falls during the run. */
  readonly rentMinimum: bigint;
  /** The lamports in the creator vault. */
  readonly creatorVault: bigint;
  /** The lamports in the AMM vault above its rent-exempt minimum. */
  readonly ammVault: bigint;
  readonly coins: readonly CoinState[];
  /** The lamports at the address. */
  readonly pda: bigint;
}

/** The start of a request: the time in milliseconds since 1970, and the chain's finalized slot. */
export interface Moment {
  readonly at: number;
  readonly finalizedSlot: number;
}

export type Timeline = ReturnType<typeof createTimeline>;

/**
 * Records every state of each account, with the time and the slot in which the state began. The
 * chain runs in this process, so an answer can be compared with every state during its request.
 */
export function createTimeline(
  chain: Chain,
  accounts: readonly SandboxAccount[],
  sharedCoins: readonly SharedCoin[],
) {
  /** Each rent-exempt minimum, with the first slot in which it applies, oldest first. */
  const rentMinimums = [{ slot: 0, rentMinimum: chain.rentExemptMinimum(0) }];
  const rentMinimumAt = (slot: number) =>
    rentMinimums.findLast((each) => each.slot <= slot)!.rentMinimum;
  const sharedByMint = new Map(sharedCoins.map((shared) => [shared.coin.mint, shared]));
  /** The states of each account, by id, oldest first. */
  const states = new Map<string, State[]>();
  /** The contents of each address, with the first slot of each content, oldest first. */
  const contents = new Map<
    string,
    { readonly slot: number; readonly content: ChainAccount | null }[]
  >();
  /** The accounts whose balance depends on an address. */
  const ownersOf = new Map<string, SandboxAccount[]>();
  const coinOf = new Map<string, CoinAddresses>();
  /** The current fees of each coin, by mint. */
  const amountsOf = new Map<string, CoinAmounts>();
  /** The landing times of the gateway's and the faucet's transactions. */
  const landedAt = new Map<string, number>();

  const above = (lamports: bigint, minimum: bigint) =>
    lamports > minimum ? lamports - minimum : 0n;
  const inAmm = (amount: bigint) => (amount >= MIN_IN_AMM ? amount : 0n);

  const ofCoin = ({
    mint,
    curve,
    curveTokens,
    pool,
    poolTokens,
    sharingConfig,
  }: CoinAddresses): string[] => [
    ...[curve, curveTokens, pool, poolTokens],
    ...(sharedByMint.has(mint) ? [sharingConfig.creatorVault, sharingConfig.ammVault] : []),
  ];

  const addressesIn = ({ address, creatorVault, ammVault, coins }: SandboxAccount): string[] => [
    ...[address, creatorVault, ammVault],
    ...coins.flatMap(ofCoin),
  ];

  function readCoin(coin: CoinAddresses): CoinAmounts {
    const waiting = feesAt(chain, coin);
    const shared = sharedByMint.get(coin.mint);
    if (!shared) return { ...waiting, distributable: 0n, rent: 0n };
    const { curve, pool } = waiting;
    const rentMinimum = chain.rentExemptMinimum(0);
    const { sharingConfig } = coin;
    const fromAmm = shared.isInPool ? inAmm(ammVaultOf(chain, sharingConfig) + pool) : 0n;
    const held = chain.balance(sharingConfig.creatorVault) + fromAmm;
    // The platform pays a vault that is short of its minimum the whole minimum.
    const rent = curve > 0n && held < rentMinimum ? rentMinimum : 0n;
    return { curve: 0n, pool: 0n, distributable: above(held + rent + curve, rentMinimum), rent };
  }

  function toState({ mint }: CoinAddresses, address: string): CoinState {
    const { curve, pool, distributable, rent } = amountsOf.get(mint)!;
    const shared = sharedByMint.get(mint);
    const share = shared ? partOf(distributable, shared, address) : 0n;
    const isEnough = share >= MIN_COLLECT_LAMPORTS && share >= AMOUNT_PER_RENT * rent;
    return { mint, curve, pool, share: isEnough ? share : 0n };
  }

  type Since = Pick<State, "at" | "slot" | "signature">;
  /** The start of a state that no transaction caused. */
  const now = (): Since => ({ at: Date.now(), slot: chain.slot("processed"), signature: "" });

  function readState(account: SandboxAccount, since: Since): State {
    const { address, creatorVault, coins } = account;
    return {
      ...since,
      rentMinimum: chain.rentExemptMinimum(0),
      creatorVault: chain.balance(creatorVault),
      ammVault: ammVaultOf(chain, account),
      coins: coins.map((coin) => toState(coin, address)),
      pda: chain.balance(address),
    };
  }

  /**
   * Records the content of these addresses, and new states of the accounts whose balances depend on
   * it.
   */
  function record(addresses: readonly string[], since: Since): void {
    for (const address of addresses)
      contents.get(address)?.push({ slot: since.slot, content: chain.account(address) });
    for (const coin of new Set(addresses.flatMap((address) => coinOf.get(address) ?? [])))
      amountsOf.set(coin.mint, readCoin(coin));
    for (const account of accountsIn(addresses))
      states.get(account.id)!.push(readState(account, since));
  }

  const accountsIn = (addresses: readonly string[]): readonly SandboxAccount[] => [
    ...new Set(addresses.flatMap((address) => ownersOf.get(address) ?? [])),
  ];

  for (const coin of new Set(accounts.flatMap(({ coins }) => coins))) {
    amountsOf.set(coin.mint, readCoin(coin));
    for (const address of ofCoin(coin)) coinOf.set(address, coin);
  }
  contents.set(RENT_SYSVAR, [{ slot: 0, content: chain.account(RENT_SYSVAR) }]);
  for (const account of accounts) {
    states.set(account.id, [readState(account, { at: 0, slot: 0, signature: "" })]);
    for (const address of addressesIn(account)) {
      contents.set(address, [{ slot: 0, content: chain.account(address) }]);
      ownersOf.set(address, [...(ownersOf.get(address) ?? []), account]);
    }
  }
  onLanded(chain, ({ message, slot, signature }) => {
    const at = Date.now();
    landedAt.set(signature, at);
    record(message.accountKeys, { at, slot, signature });
  });

  /**
   * The lamports that a collect with these mints would move. Mints of other accounts' coins are
   * ignored.
   */
  function feesOf(
    { creatorVault, ammVault, coins, rentMinimum }: State,
    mints: readonly string[],
  ): bigint {
    const named = coins.filter(({ mint }) => mints.includes(mint));
    const total = (amounts: readonly bigint[]) => amounts.reduce((sum, amount) => sum + amount, 0n);
    const onCurves = total(named.map(({ curve }) => curve));
    const inPools = total(named.map(({ pool }) => pool));
    const shares = total(named.map(({ share }) => share));
    return above(creatorVault + onCurves + inAmm(ammVault + inPools), rentMinimum) + shares;
  }

  /** The account that a node at this slot has at an address. */
  function contentAt(address: string, slot: number): ChainAccount | null {
    const list = contents.get(address);
    return list ? list.findLast((entry) => entry.slot <= slot)!.content : chain.account(address);
  }

  function setAccount(address: string, account: ChainAccount | null): void {
    if (account) chain.setAccount(address, account);
    else chain.setBalance(address, 0n);
  }

  /** Simulates a transaction on its accounts at this slot. The rent stays the chain's. */
  function simulateAt(slot: number, transaction: WireTransaction): ReturnType<Chain["simulate"]> {
    const later = transaction.message.accountKeys.filter((address) => {
      const last = contents.get(address)?.at(-1);
      return last && last.slot > slot && address !== RENT_SYSVAR;
    });
    const current = later.map((address) => [address, chain.account(address)] as const);
    for (const address of later) setAccount(address, contentAt(address, slot));
    try {
      return chain.simulate(transaction);
    } finally {
      for (const [address, account] of current) setAccount(address, account);
    }
  }

  return {
    /** Records a coin's fees after they have changed without a transaction. */
    refresh({ curve, pool }: CoinAddresses): void {
      record([curve, pool], now());
    },

    /** Lowers the chain's rent from a new slot on, and records the change. */
    setRent(lamportsPerByte: number): void {
      chain.advanceSlots(1);
      setRent(chain, lamportsPerByte);
      rentMinimums.push({ slot: now().slot, rentMinimum: chain.rentExemptMinimum(0) });
      record([...contents.keys()], now());
    },

    rentMinimumAt,

    feesOf,

    now: (): Moment => ({ at: Date.now(), finalizedSlot: chain.slot("finalized") }),

    /** All states of an account so far, oldest first. */
    statesOf: (id: string): readonly State[] => states.get(id)!,

    /**
     * The index in `statesOf` of the finalized state at a moment. Every later state is true after
     * that moment.
     */
    indexAt: (id: string, { finalizedSlot }: Moment) =>
      states.get(id)!.findLastIndex(({ slot }) => slot <= finalizedSlot),

    /** The chain as a node at this slot shows and simulates it. */
    viewAt(slot: () => number): Chain {
      const account = (address: string) => contentAt(address, slot());
      return {
        ...chain,
        account,
        balance: (address) => account(address)?.lamports ?? 0n,
        simulate: (transaction) => simulateAt(slot(), transaction),
      };
    },

    /** The accounts whose balances depend on any of these addresses. */
    accountsIn,

    /** When a transaction landed, in milliseconds since 1970. */
    landedAt: (signature: string) => landedAt.get(signature),

    /**
     * Whether a collect with these mints moves nothing: fees are too low, or an empty address
     * cannot receive them.
     */
    isNothing(state: State, mints: readonly string[]): boolean {
      const fees = feesOf(state, mints);
      return fees < MIN_COLLECT_LAMPORTS || fees + state.pda < state.rentMinimum;
    },
  };
}

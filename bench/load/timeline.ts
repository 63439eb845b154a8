import type { Chain, ChainAccount } from "../../src/sandbox/chain/chain.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { coinFees } from "../../test/support/coin-balances.ts";

/** Amounts below this are not collected: the default of MIN_COLLECT_LAMPORTS. */
const MIN_COLLECT_LAMPORTS = 100_000n;
/** Source: the Token program's account layout. */
const TOKEN_ACCOUNT_BYTES = 165;
const TOKEN_AMOUNT_OFFSET = 64;

/** An account's balance, from one transaction to the next. */
export interface State {
  /** When its transaction landed, in milliseconds since 1970; 0 before the first. */
  readonly at: number;
  readonly slot: number;
  /** The signature of its transaction; "" before the first. */
  readonly signature: string;
  /** What a collect would move, in lamports. */
  readonly vault: bigint;
  /** What a collect that names the account's coin would move. */
  readonly vaultWithCoin: bigint;
  /** The lamports at the address. */
  readonly pda: bigint;
}

/** When a request starts: the time, and the slot of the chain's confirmed view. */
export interface Moment {
  readonly at: number;
  readonly confirmedSlot: number;
}

export type Timeline = ReturnType<typeof createTimeline>;

/**
 * Records every state of the accounts, and when and in which slot it began. The chain runs in this process, so an
 * answer can be compared with all that was true while its request ran.
 */
export function createTimeline(chain: Chain, accounts: readonly SandboxAccount[]) {
  const rentMinimum = chain.rentExemptMinimum(0);
  const tokenRentMinimum = chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES);
  /** The states of each account, by id, oldest first. */
  const states = new Map<string, State[]>();
  /** The content of each address of the accounts, with the slot since which it is there, oldest first. */
  const contents = new Map<string, { readonly slot: number; readonly content: ChainAccount | null }[]>();
  const ownerOf = new Map<string, SandboxAccount>();
  /** The landing times of the gateway's and the faucet's transactions. */
  const landedAt = new Map<string, number>();

  const addressesIn = ({ address, creatorVault, ammVault, coins }: SandboxAccount) => [
    address,
    creatorVault,
    ammVault,
    ...coins.flatMap(({ curve, curveTokens, pool, poolTokens }) => [curve, curveTokens, pool, poolTokens]),
  ];

  function readState(
    { address, creatorVault, ammVault, coins: [coin] }: SandboxAccount,
    since: Pick<State, "at" | "slot" | "signature">,
  ): State {
    const data = chain.account(ammVault)?.data;
    const wrapped = data ? Buffer.from(data).readBigUInt64LE(TOKEN_AMOUNT_OFFSET) : 0n;
    const waiting = coin ? coinFees(chain, coin.mint) : { curve: 0n, pool: 0n };
    // The AMM moves no less than the rent of a token account.
    const inAmm = (amount: bigint) => (amount >= tokenRentMinimum ? amount : 0n);
    const above = (lamports: bigint) => (lamports > rentMinimum ? lamports - rentMinimum : 0n);
    const inVault = chain.balance(creatorVault);
    return {
      ...since,
      vault: above(inVault + inAmm(wrapped)),
      vaultWithCoin: above(inVault + waiting.curve + inAmm(wrapped + waiting.pool)),
      pda: chain.balance(address),
    };
  }

  for (const account of accounts) {
    states.set(account.id, [readState(account, { at: 0, slot: 0, signature: "" })]);
    for (const address of addressesIn(account)) {
      contents.set(address, [{ slot: 0, content: chain.account(address) }]);
      ownerOf.set(address, account);
    }
  }
  chain.onLanded(({ message, slot, signature }) => {
    const at = Date.now();
    landedAt.set(signature, at);
    const touched = new Set<SandboxAccount>();
    for (const address of message.staticAccounts) {
      const account = ownerOf.get(address);
      if (!account) continue;
      contents.get(address)!.push({ slot, content: chain.account(address) });
      touched.add(account);
    }
    for (const account of touched) states.get(account.id)!.push(readState(account, { at, slot, signature }));
  });

  return {
    /** Records the account again, after its coin has changed without a transaction. */
    refresh(account: SandboxAccount): void {
      const { at, slot, signature } = states.get(account.id)!.at(-1)!;
      for (const address of addressesIn(account))
        contents.get(address)!.push({ slot, content: chain.account(address) });
      states.get(account.id)!.push(readState(account, { at, slot, signature }));
    },

    now: (): Moment => ({ at: Date.now(), confirmedSlot: chain.slot("confirmed") }),

    /** All states of an account so far, oldest first. */
    statesOf: (id: string): readonly State[] => states.get(id)!,

    /** The index in `statesOf` of the confirmed state at a moment. Every later state is true after that moment. */
    indexAt: (id: string, { confirmedSlot }: Moment) =>
      states.get(id)!.findLastIndex(({ slot }) => slot <= confirmedSlot),

    /** What a node at this slot has at an address. */
    contentAt(address: string, slot: number): ChainAccount | null {
      const list = contents.get(address);
      return list ? list.findLast((entry) => entry.slot <= slot)!.content : chain.account(address);
    },

    /** The accounts that a transaction's addresses belong to. */
    accountsIn: (addresses: readonly string[]): readonly SandboxAccount[] => [
      ...new Set(addresses.flatMap((address) => ownerOf.get(address) ?? [])),
    ],

    /** When a transaction landed, in milliseconds since 1970. */
    landedAt: (signature: string) => landedAt.get(signature),

    /** Whether a collect, that names the account's coin or not, would have nothing to do: too little, or less than an empty address may receive. */
    isNothing({ vault, vaultWithCoin, pda }: State, withCoin: boolean): boolean {
      const fees = withCoin ? vaultWithCoin : vault;
      return fees < MIN_COLLECT_LAMPORTS || fees + pda < rentMinimum;
    },
  };
}

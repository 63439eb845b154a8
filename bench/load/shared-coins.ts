import { newMint } from "../../test/support/new-mint.ts";
import type { CoinAddresses } from "../../src/chain/launchpad/coin-addresses.ts";
import type { Shareholder } from "../../src/chain/launchpad/sharing-config.ts";
import { setWrappedSol } from "../../src/sandbox/chain/accounts.ts";
import type { Sandbox, SandboxAccount } from "../../src/sandbox/sandbox.ts";

/** A coin whose fees accounts share, with each other and with strangers. */
export interface SharedCoin {
  readonly coin: CoinAddresses;
  readonly isInPool: boolean;
  readonly shareholders: readonly Shareholder[];
  /** The addresses of shareholders that belong to no account of the sandbox. */
  readonly strangers: readonly string[];
  /** The fees that the coin has received so far, in lamports. */
  arrived: bigint;
}

/** How many accounts and strangers share each coin. Every second coin is in a pool. */
export const SHARED_COINS = [
  { accounts: 2, strangers: 1 },
  { accounts: 2, strangers: 0 },
  { accounts: 10, strangers: 0 },
  { accounts: 3, strangers: 1 },
  { accounts: 5, strangers: 5 },
  { accounts: 9, strangers: 0 },
  { accounts: 4, strangers: 1 },
  { accounts: 6, strangers: 4 },
] as const;

/**
 * The distance between the first shareholders of consecutive coins. It is small, so many accounts
 * share several.
 */
const ACCOUNTS_APART = 3;
/**
 * The difference between the shares of consecutive shareholders. An odd number makes the platform
 * round amounts.
 */
const BPS_APART = 37;
const ALL_BPS = 10_000;
/** Enough that the fee payer pays the rent of a sharing config's missing vault. */
const FIRST_FEES = 1_000_000_000n;
const STRANGER_LAMPORTS = 1_000_000_000n;

/**
 * Launches coins whose fees are shared. All shareholders' addresses hold enough to receive any
 * amount. The sharing configs of coins on a curve have no creator vault yet.
 */
export function launchSharedCoins(
  { chain, coins }: Sandbox,
  accounts: readonly SandboxAccount[],
  counts: readonly { readonly accounts: number; readonly strangers: number }[],
): SharedCoin[] {
  const receivers = accounts.filter(
    ({ address }) => chain.balance(address) >= chain.rentExemptMinimum(0),
  );
  return counts.map((count, i): SharedCoin => {
    const mint = newMint();
    const isInPool = i % 2 === 1;
    const start = i * ACCOUNTS_APART;
    const sharing = receivers.slice(start, start + count.accounts);
    const strangers = Array.from({ length: count.strangers }, newMint);
    for (const stranger of strangers) chain.setBalance(stranger, STRANGER_LAMPORTS);
    const shareholders = toShareholders([...sharing.map(({ address }) => address), ...strangers]);
    coins.launch({ mint, creator: mint, shareholders, fees: FIRST_FEES });
    const coin = coins.addressesOf(mint);
    if (isInPool) {
      coins.migrate(mint);
      chain.setBalance(coin.sharingConfig.creatorVault, chain.rentExemptMinimum(0));
      setWrappedSol(chain, coin.sharingConfig.ammVaultAuthority, 0n);
    }
    return { coin, isInPool, shareholders, strangers, arrived: FIRST_FEES };
  });
}

/**
 * The part of an amount that a shareholder receives, rounded down as on the platform; 0 for other
 * addresses.
 */
export function partOf(amount: bigint, { shareholders }: SharedCoin, address: string): bigint {
  const { bps = 0 } = shareholders.find((each) => each.address === address) ?? {};
  return (amount * BigInt(bps)) / BigInt(ALL_BPS);
}

/** The number of coins that fail in the simulation, and of coins whose fees stay on the chain. */
const FAILING_COINS_PER_KIND = 4;
const ACCOUNTS_PER_FAILING_COIN = 9;
/** The last shareholder's share. An address without lamports cannot receive so little. */
const FAILING_BPS = 1;

/**
 * Launches coins whose distribution moves nothing because of one shareholder. For half of the
 * coins, that is a program, and the simulation fails. For the others it is a stranger, and the
 * transaction lands without effect: strangers have lamports until `emptyStrangers` takes them when
 * a transaction is sent. Lookups never name these coins.
 */
export function launchFailingCoins(
  { chain, coins, env }: Sandbox,
  accounts: readonly SandboxAccount[],
) {
  const receivers = accounts.filter(
    ({ address }) => chain.balance(address) >= chain.rentExemptMinimum(0),
  );
  const strangers = new Set<string>();
  const count = receivers.length > 0 ? 2 * FAILING_COINS_PER_KIND : 0;
  const failingCoins = Array.from({ length: count }, (_, i): SharedCoin => {
    const [mint, stranger] = [newMint(), newMint()];
    const isProgram = i % 2 === 1;
    if (!isProgram) strangers.add(stranger);
    const start = i * ACCOUNTS_APART;
    const sharing = receivers.slice(start, start + ACCOUNTS_PER_FAILING_COIN);
    const bps = Math.floor((ALL_BPS - FAILING_BPS) / sharing.length);
    const shareholders = sharing.map(({ address }) => ({ address, bps }));
    shareholders[0]!.bps += ALL_BPS - FAILING_BPS - bps * sharing.length;
    const last = isProgram ? env.ESCROW_PROGRAM_ID : stranger;
    shareholders.push({ address: last, bps: FAILING_BPS });
    coins.launch({ mint, creator: mint, shareholders, fees: FIRST_FEES });
    const coin = coins.addressesOf(mint);
    chain.setBalance(coin.sharingConfig.creatorVault, chain.rentExemptMinimum(0));
    return { coin, isInPool: false, shareholders, strangers: [last], arrived: FIRST_FEES };
  });
  function fillStrangers(): void {
    for (const stranger of strangers) chain.setBalance(stranger, STRANGER_LAMPORTS);
  }
  fillStrangers();
  return {
    failingCoins,
    fillStrangers,
    /** Call this with the addresses of each sent transaction. */
    emptyStrangers(addresses: readonly string[]): void {
      for (const address of addresses) if (strangers.has(address)) chain.setBalance(address, 0n);
    },
  };
}

/** Gives each address a different share. The first address gets the smallest. */
function toShareholders(addresses: readonly string[]): Shareholder[] {
  const middle = Math.floor(ALL_BPS / addresses.length);
  const bps = addresses.map(
    (_, i) => middle + Math.round((i - (addresses.length - 1) / 2) * BPS_APART),
  );
  const rest = ALL_BPS - bps.reduce((sum, each) => sum + each, 0);
  return addresses.map((address, i) => ({ address, bps: bps[i]! + (i === 0 ? rest : 0) }));
}

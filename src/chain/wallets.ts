import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import type { AccountAddresses } from "./addresses.ts";
import type { Floors, ReadAmounts } from "./slots/floors.ts";
import { toLamports } from "./lamports.ts";
import type { CoinAddresses } from "./launchpad/coin-addresses.ts";
import { isShareholder, type CoinAccounts, type DecodeCoin } from "./launchpad/coin-fees.ts";
import { COIN_DATA } from "./launchpad/fee-accounts.ts";
import { decodeRent, RENT_SYSVAR, type Rent } from "./rent.ts";
import { MAX_ACCOUNTS_PER_READ, type Account } from "./rpc/read-accounts.ts";
import type { Rpc } from "./rpc/rpc-client.ts";
import { RpcError } from "./rpc/rpc-error.ts";
import { readWrappedSol, TOKEN_BYTES_TO_AMOUNT } from "./token-accounts.ts";

/** An account, and the coins whose waiting fees are read with it. */
export interface WalletWithCoins {
  readonly account: AccountAddresses;
  readonly coins: readonly CoinAddresses[];
}

/** Tells wallets with different coins apart. */
export function identityOf({ account, coins }: WalletWithCoins): string {
  // Without coins, reuse the address: V8 would have to hash a new string.
  return coins.length === 0 ? account.address : [account.address, ...coins.map(({ mint }) => mint)].join();
}

/** The accounts that hold a creator's fees. */
export interface VaultAccounts {
  readonly creatorVault: Account;
  readonly ammVault: Account;
}

/** The accounts of one wallet and its coins, all read in one slot, so that they are consistent. */
export interface WalletAccounts extends VaultAccounts {
  readonly address: Account;
  readonly rent: Rent;
  /** In the order of the wallet's coins. */
  readonly coins: readonly WalletCoin[];
}

/** A coin's accounts, with the vaults of its sharing config if the wallet's account shares the fees. */
interface WalletCoin extends CoinAccounts {
  readonly sharedVaults: VaultAccounts | undefined;
}

/** A wallet, and those of its coins of which the vaults of the sharing config are read. */
interface WalletRead extends WalletWithCoins {
  readonly shared?: readonly CoinAddresses[];
}

/**
 * Reads wallets as they are now, in order: an {@link RpcError} for each that cannot be read, 0 lamports for
 * an account that does not exist.
 */
export type ReadWallets = (
  wallets: readonly WalletWithCoins[],
  signal?: AbortSignal,
) => Promise<(WalletAccounts | Error)[]>;

/** The rent sysvar, which all wallets of a call share. */
const SHARED_ACCOUNTS = 1;
const ACCOUNTS_PER_WALLET = 3;
const ACCOUNTS_PER_COIN = 3;
/** A call of this many wallets without coins is full. */
const MAX_WALLETS_PER_CALL = Math.floor((MAX_ACCOUNTS_PER_READ - SHARED_ACCOUNTS) / ACCOUNTS_PER_WALLET);
/** What a call without coins reads of each account: enough for the amount of a token account, and for the rent. */
const WALLET_DATA = { offset: 0, length: TOKEN_BYTES_TO_AMOUNT };
/** Calls in flight at once: a call that hangs must not hold up the others. */
const MAX_CALLS = 32;
/**
 * The longest that wallets wait for a batch while another call is in flight. Until calls are full, this makes at most
 * 50 calls/s to a node that takes 20 ms or longer, which fits the small plans of providers. `npm run bench:tail` shows
 * the latency.
 */
const MAX_WAIT_MS = 20;
/** How many times a wallet is read until its account shares the fees of the same coins as before. */
const MAX_READS = 3;

const NONE: readonly CoinAddresses[] = [];
const NO_ACCOUNT: Account = { lamports: toLamports(0), data: Buffer.alloc(0) };

/**
 * Reads wallets for the whole process: merges the reads of concurrent callers into calls of up to 32 wallets, or
 * fewer if they name coins. The accounts of a wallet and its coins are read in one slot: a collect between them would
 * show a total that never existed. No wallet goes back in time: one that is below its floor is read again, while the
 * others of the call are answered. Caches nothing, and no caller joins a call that was sent before it asked. The only
 * account data it reads is the amount of a token account, a coin's curve, pool and sharing config, and the rent sysvar.
 *
 * Whether an account shares the fees of a coin is known only after a read. Then the wallet is read again, with the
 * vaults of the coin's sharing config.
 */
export function createReadWallets({
  rpc,
  floors,
  decodeCoin,
  metrics,
}: {
  rpc: Rpc;
  floors: Floors;
  decodeCoin: DecodeCoin;
  metrics: BatchMetrics;
}): ReadWallets {
  const batcher = createBatcher<WalletRead, WalletAccounts>({
    async ask(wallets, answer) {
      const hasCoins = wallets.some(({ coins }) => coins.length > 0);
      await rpc.readAccounts({
        groups: wallets.map(toAddresses),
        dataSlice: hasCoins ? COIN_DATA : WALLET_DATA,
        minSlotOf: (i) => minSlotOf(wallets[i]!),
        take(i, accounts, slot) {
          const wallet = toWallet(wallets[i]!, accounts);
          if (!wallet) return "unreadable";
          if (!floors.take(slot, toAmounts(wallets[i]!, wallet))) return false;
          answer(i, wallet);
          return true;
        },
      });
    },
    idOf: (wallet) =>
      wallet.shared
        ? `${identityOf(wallet)} ${wallet.shared.map(({ mint }) => mint).join()}`
        : identityOf(wallet),
    maxKeys: MAX_WALLETS_PER_CALL,
    maxCalls: MAX_CALLS,
    maxWaitMs: MAX_WAIT_MS,
    metrics,
  });

  /** A collect of any shareholder changes a shared coin. */
  function minSlotOf({ account, shared }: WalletRead): number {
    const slot = floors.landedSlotOf(account.address);
    return shared ? Math.max(slot, ...shared.map(({ curve }) => floors.landedSlotOf(curve))) : slot;
  }

  async function withSharedVaults(
    wallet: WalletWithCoins,
    first: WalletAccounts,
    signal: AbortSignal | undefined,
  ): Promise<WalletAccounts | Error> {
    const { account, coins } = wallet;
    let accounts = first;
    for (let reads = 1; ; reads++) {
      const shared = coins.filter((coin, i) =>
        isShareholder(decodeCoin(coin, accounts.coins[i]!), account.address),
      );
      if (shared.every((coin) => accounts.coins[coins.indexOf(coin)]!.sharedVaults)) return accounts;
      if (reads === MAX_READS) return new RpcError("unreadable", "getMultipleAccounts", "an endpoint");
      const [read] = await batcher.load([{ ...wallet, shared }], { signal });
      if (!read || read instanceof Error) return read ?? new Error("a wallet is missing");
      accounts = read;
    }
  }

  async function withSharedCoins(
    wallets: readonly WalletWithCoins[],
    first: Promise<(WalletAccounts | Error)[]>,
    signal: AbortSignal | undefined,
  ): Promise<(WalletAccounts | Error)[]> {
    const read = await first;
    return Promise.all(
      read.map(async (accounts, i) =>
        accounts instanceof Error ? accounts : withSharedVaults(wallets[i]!, accounts, signal),
      ),
    );
  }

  return (wallets, signal) => {
    const read = batcher.load(wallets, { signal });
    return wallets.some(({ coins }) => coins.length > 0) ? withSharedCoins(wallets, read, signal) : read;
  };
}

/** As many of the first wallets as one call can read, at least one. */
export function takeOneCall<Wallet extends WalletWithCoins>(wallets: Iterable<Wallet>): Wallet[] {
  const taken: Wallet[] = [];
  let accounts = SHARED_ACCOUNTS;
  for (const wallet of wallets) {
    accounts += ACCOUNTS_PER_WALLET + ACCOUNTS_PER_COIN * wallet.coins.length;
    if (taken.length > 0 && accounts > MAX_ACCOUNTS_PER_READ) break;
    taken.push(wallet);
  }
  return taken;
}

function toAddresses({ account, coins, shared = NONE }: WalletRead): string[] {
  const { creatorVault, ammVault, address } = account;
  const addresses = [RENT_SYSVAR, creatorVault, ammVault, address];
  for (const { curve, pool, sharingConfig } of coins) addresses.push(curve, pool, sharingConfig.address);
  for (const { sharingConfig } of shared) addresses.push(sharingConfig.creatorVault, sharingConfig.ammVault);
  return addresses;
}

/** What can change of a wallet, of each of its coins, and of the vaults of its shared ones. */
function toAmounts({ account, coins }: WalletWithCoins, found: WalletAccounts): ReadAmounts {
  const ofWallet = [account.address, [...ofVaults(found), found.address.lamports]] as const;
  if (coins.length === 0) return [ofWallet];
  return [
    ofWallet,
    ...found.coins.flatMap(({ curve, pool, sharingConfig, sharedVaults }, i) => {
      const ofCoin = [curve, pool, sharingConfig].flatMap((each) => [
        each?.lamports,
        each?.data.toString("base64"),
      ]);
      const { curve: key, sharingConfig: config } = coins[i]!;
      const ofShared = sharedVaults ? [[config.address, ofVaults(sharedVaults)] as const] : [];
      return [[key, ofCoin] as const, ...ofShared];
    }),
  ];
}

const ofVaults = ({ creatorVault, ammVault }: VaultAccounts) => [
  creatorVault.lamports,
  readWrappedSol(ammVault),
];

/** The accounts in the order of {@link toAddresses}; undefined if the rent is unreadable. */
function toWallet(
  { coins, shared = NONE }: WalletRead,
  accounts: readonly (Account | undefined)[],
): WalletAccounts | undefined {
  const [sysvar, creatorVault = NO_ACCOUNT, ammVault = NO_ACCOUNT, address = NO_ACCOUNT] = accounts;
  const rent = decodeRent(sysvar);
  if (!rent) return undefined;
  const ofCoins = SHARED_ACCOUNTS + ACCOUNTS_PER_WALLET;
  const ofShared = ofCoins + ACCOUNTS_PER_COIN * coins.length;
  const found = coins.map((coin, i): WalletCoin => {
    const [curve, pool, sharingConfig] = accounts.slice(ofCoins + ACCOUNTS_PER_COIN * i);
    const index = shared.indexOf(coin);
    if (index < 0) return { curve, pool, sharingConfig, sharedVaults: undefined };
    const [creatorVault = NO_ACCOUNT, ammVault = NO_ACCOUNT] = accounts.slice(ofShared + 2 * index);
    return { curve, pool, sharingConfig, sharedVaults: { creatorVault, ammVault } };
  });
  return { creatorVault, ammVault, address, rent, coins: found };
}

import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import type { AccountAddresses } from "./addresses.ts";
import type { Floors, ReadAmounts } from "./slots/floors.ts";
import { toLamports } from "./lamports.ts";
import type { CoinAddresses } from "./launchpad/coin-addresses.ts";
import { FEE_ACCOUNT_DATA } from "./launchpad/fee-accounts.ts";
import { decodeRent, RENT_SYSVAR, type Rent } from "./rent.ts";
import { MAX_ACCOUNTS_PER_CALL, type Account } from "./rpc/read-accounts.ts";
import type { Rpc } from "./rpc/rpc-client.ts";
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

/** The accounts of one wallet and its coins, all read in one slot, so that they are consistent. */
export interface WalletAccounts {
  readonly creatorVault: Account;
  readonly ammVault: Account;
  readonly address: Account;
  readonly rent: Rent;
  /** In the order of the wallet's coins. */
  readonly coins: readonly CoinAccounts[];
}

interface CoinAccounts {
  readonly curve: Account | undefined;
  readonly pool: Account | undefined;
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
const ACCOUNTS_PER_COIN = 2;
/** A call of this many wallets without coins is full. */
const MAX_WALLETS_PER_CALL = Math.floor((MAX_ACCOUNTS_PER_CALL - SHARED_ACCOUNTS) / ACCOUNTS_PER_WALLET);
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

const NO_ACCOUNT: Account = { lamports: toLamports(0), data: Buffer.alloc(0) };

/**
 * Reads wallets for the whole process: merges the reads of concurrent callers into calls of up to 33 wallets, or
 * fewer if they name coins. The accounts of a wallet and its coins are read in one slot: a collect between them would
 * show a total that never existed. No wallet goes back in time: one that is below its floor is read again, while the
 * others of the call are answered. Caches nothing, and no caller joins a call that was sent before it asked. The only
 * account data it reads is the amount of a token account, a coin's curve and pool, and the rent sysvar.
 */
export function createReadWallets({
  rpc,
  floors,
  metrics,
}: {
  rpc: Rpc;
  floors: Floors;
  metrics: BatchMetrics;
}): ReadWallets {
  const batcher = createBatcher<WalletWithCoins, WalletAccounts>({
    async ask(wallets, answer) {
      const hasCoins = wallets.some(({ coins }) => coins.length > 0);
      await rpc.readAccounts({
        groups: wallets.map(toAddresses),
        dataSlice: hasCoins ? FEE_ACCOUNT_DATA : WALLET_DATA,
        minSlotOf: (i) => floors.landedSlotOf(wallets[i]!.account.address),
        take(i, accounts, slot) {
          const wallet = toWallet(accounts);
          if (!wallet) return "unreadable";
          if (!floors.take(slot, toAmounts(wallets[i]!, wallet))) return false;
          answer(i, wallet);
          return true;
        },
      });
    },
    idOf: identityOf,
    maxKeys: MAX_WALLETS_PER_CALL,
    maxCalls: MAX_CALLS,
    maxWaitMs: MAX_WAIT_MS,
    metrics,
  });
  return (wallets, signal) => batcher.load(wallets, { signal });
}

/** As many of the first wallets as one call can read, at least one. */
export function takeOneCall<Wallet extends WalletWithCoins>(wallets: Iterable<Wallet>): Wallet[] {
  const taken: Wallet[] = [];
  let accounts = SHARED_ACCOUNTS;
  for (const wallet of wallets) {
    accounts += ACCOUNTS_PER_WALLET + ACCOUNTS_PER_COIN * wallet.coins.length;
    if (taken.length > 0 && accounts > MAX_ACCOUNTS_PER_CALL) break;
    taken.push(wallet);
  }
  return taken;
}

function toAddresses({ account, coins }: WalletWithCoins): string[] {
  const { creatorVault, ammVault, address } = account;
  return [RENT_SYSVAR, creatorVault, ammVault, address, ...coins.flatMap(({ curve, pool }) => [curve, pool])];
}

/** What can change of a wallet, and of each of its coins. */
function toAmounts({ account, coins }: WalletWithCoins, found: WalletAccounts): ReadAmounts {
  const { creatorVault, ammVault, address } = found;
  const ofWallet = [creatorVault.lamports, readWrappedSol(ammVault), address.lamports];
  return [
    [account.address, ofWallet],
    ...coins.map(({ curve }, i) => {
      const ofCoin = [found.coins[i]!.curve, found.coins[i]!.pool].flatMap((each) => [
        each?.lamports,
        each?.data.toString("base64"),
      ]);
      return [curve, ofCoin] as const;
    }),
  ];
}

/** The accounts in the order of {@link toAddresses}; undefined if the rent is unreadable. */
function toWallet(accounts: readonly (Account | undefined)[]): WalletAccounts | undefined {
  const [sysvar, creatorVault = NO_ACCOUNT, ammVault = NO_ACCOUNT, address = NO_ACCOUNT] = accounts;
  const rent = decodeRent(sysvar);
  if (!rent) return undefined;
  const coins: CoinAccounts[] = [];
  for (let i = SHARED_ACCOUNTS + ACCOUNTS_PER_WALLET; i < accounts.length; i += ACCOUNTS_PER_COIN)
    coins.push({ curve: accounts[i], pool: accounts[i + 1] });
  return { creatorVault, ammVault, address, rent, coins };
}

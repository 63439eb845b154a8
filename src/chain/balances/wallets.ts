import { hash } from "node:crypto";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import type { Caller } from "../../fairness/caller.ts";
import { partsOf, type Batches, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { blocksOf, createBatcher } from "../../upstream/batcher.ts";
import type { Amounts, Floors } from "./floors.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import { decodeCoin, keysOfCoin, type Coin } from "../launchpad/coin-fees.ts";
import { COIN_BYTES } from "../launchpad/fee-accounts.ts";
import type { Rent } from "../primitives/rent.ts";
import { MAX_KEYS_PER_CALL, type Accounts } from "../rpc/read-accounts.ts";
import type { Account } from "../rpc/rpc-results.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { toVaults, type Vaults } from "../launchpad/choose-sweeps.ts";
import { TOKEN_BYTES_TO_AMOUNT } from "../launchpad/token-accounts.ts";

/** An account, and the coins whose waiting fees are read with it. */
export interface WalletWithCoins {
  readonly account: AccountAddresses;
  readonly coins: readonly CoinAddresses[];
}

export const identityOf = ({ account, coins }: WalletWithCoins): string =>
  [account.address, ...coins.map(({ mint }) => mint)].join();

/** A wallet and its coins, all read in one slot, so that they are consistent. */
export interface WalletState {
  readonly address: Account | undefined;
  readonly vaults: Vaults;
  /** In the order of the wallet's coins. */
  readonly coins: readonly Coin[];
  readonly rent: Rent;
  /** In which slot all was read. */
  readonly slot: number;
}

/**
 * Returns the current state of each wallet, in order; an {@link RpcError} for a wallet that cannot
 * be read. `caller`: who looks the wallets up; absent, the reads belong to the owner of the running
 * code.
 */
export type ReadWallets = (
  wallets: readonly WalletWithCoins[],
  caller?: Caller,
) => Promise<(WalletState | Error)[]>;

const ACCOUNTS_PER_WALLET = 3;
const ACCOUNTS_PER_COIN = 5;
/** The most calls in flight: one that hangs must not hold up the others. */
const MAX_CALLS = 32;
/**
 * The longest that a wallet waits for its call while another one is in flight. Unless calls are
 * full, a node that takes at least 20 ms per call gets at most 50 calls/s, which fits providers'
 * small plans.
 */
const MAX_WAIT_MS = 20;

/**
 * Reads wallets for the whole process: merges the wallets of concurrent callers into as few calls
 * as possible, and answers each wallet as soon as its call returns. Reads a wallet and its coins in
 * one slot: with a collect between two slots, the total would be wrong. Reads a wallet again if its
 * state is older than a state already shown; the other wallets do not wait. Caches nothing: no
 * caller gets the result of a call that was sent before the caller asked.
 */
export function createReadWallets(needs: {
  rpc: Pick<Rpc, "readAccounts">;
  floors: Pick<Floors, "take" | "landedSlotOf">;
  chainCallPlan: ChainCallPlan;
}): ReadWallets {
  const { rpc, floors, chainCallPlan } = needs;

  const createReads = (batches?: Batches) =>
    createBatcher<WalletWithCoins, WalletState>({
      ask(batch, answer) {
        const wallets = batch.map(({ key }) => key);
        const withCoins = wallets.some(({ coins }) => coins.length > 0);
        const read = () =>
          rpc.readAccounts({
            groups: wallets.map(toKeys),
            bytes: withCoins ? COIN_BYTES : TOKEN_BYTES_TO_AMOUNT,
            // Consider the coins' last collects too: a collect for one shareholder changes the
            // amounts of all shareholders.
            minSlotOf(i) {
              const { account, coins } = wallets[i]!;
              const addresses = [account.address, ...coins.map(({ curve }) => curve)];
              return Math.max(...addresses.map(floors.landedSlotOf));
            },
            take(i, { accounts, rent, slot }) {
              const wallet = wallets[i]!;
              if (!floors.take(slot, toAmounts(wallet, accounts))) return false;
              const [creatorVault, ammVault, address] = accounts;
              answer(i, {
                address,
                vaults: toVaults(creatorVault, ammVault, rent),
                coins: wallet.coins.map((coin, j) =>
                  decodeCoin(coin, accountsOfCoin(accounts, j), rent),
                ),
                rent,
                slot,
              });
              return true;
            },
          });
        const parts = partsOf(batch, blocksOf, ({ key }) => partOfCall(key));
        return batches?.run(parts, read) ?? read();
      },
      idOf: identityOf,
      maxKeys: MAX_KEYS_PER_CALL,
      sizeOf: accountsOf,
      maxCalls: MAX_CALLS,
      maxWaitMs: MAX_WAIT_MS,
      policy: batches?.policyOf(partOfCall, MAX_KEYS_PER_CALL),
    });
  const lookups = createReads(chainCallPlan.batchesOf("lookups"));
  const collects = createReads(chainCallPlan.batchesOf("collects"));
  /** For live reads, which have taken their turn. */
  const streams = createReads();

  return (wallets, caller) => {
    if (caller) {
      const { addressBlock, signal } = caller;
      return lookups.load(wallets, { blocks: [addressBlock], signal });
    }
    const owner = chainCallPlan.owner();
    const blocks = [...(owner?.parts.keys() ?? ["service"])];
    const reads = owner?.use === "streams" ? streams : collects;
    return reads.load(wallets, { blocks, signal: owner?.signal });
  };
}

/** Returns the first wallet, and those of the others that the same call can read. */
export function takeOneCall<Wallet extends WalletWithCoins>(wallets: Iterable<Wallet>): Wallet[] {
  const takenWallets: Wallet[] = [];
  let accounts = 0;
  for (const wallet of wallets) {
    const sum = accounts + accountsOf(wallet);
    if (takenWallets.length > 0 && sum > MAX_KEYS_PER_CALL) continue;
    takenWallets.push(wallet);
    accounts = sum;
  }
  return takenWallets;
}

/** How many accounts a wallet adds to a call with `others`. */
function accountsOf({ coins }: WalletWithCoins, others: readonly WalletWithCoins[] = []): number {
  if (coins.length === 0) return ACCOUNTS_PER_WALLET;
  const addedCoins = coins.filter(
    ({ mint }) => !others.some((other) => other.coins.some((coin) => coin.mint === mint)),
  );
  return ACCOUNTS_PER_WALLET + ACCOUNTS_PER_COIN * addedCoins.length;
}

/** The part of a call that a wallet takes, 0 to 1: only whole wallets fit. */
export function partOfCall(wallet: WalletWithCoins): number {
  return 1 / Math.floor(MAX_KEYS_PER_CALL / accountsOf(wallet));
}

const toKeys = ({ account, coins }: WalletWithCoins): string[] => [
  account.creatorVault,
  account.ammVault,
  account.address,
  ...coins.flatMap(keysOfCoin),
];

function accountsOfCoin(accounts: Accounts, index: number): Accounts {
  const from = ACCOUNTS_PER_WALLET + ACCOUNTS_PER_COIN * index;
  return accounts.slice(from, from + ACCOUNTS_PER_COIN);
}

/**
 * Returns pairs of an address and the amounts that can change: the wallet's address first, then
 * each coin's curve.
 */
function toAmounts({ account, coins }: WalletWithCoins, accounts: Accounts): Amounts {
  const own = accounts.slice(0, ACCOUNTS_PER_WALLET).map((each) => String(each?.lamports));
  return [
    [account.address, own.join()],
    ...coins.map(({ curve }, i) => [curve, digestOf(accountsOfCoin(accounts, i))] as const),
  ];
}

/** Empty for a coin that does not exist. A digest is small: floors keep it for many coins. */
function digestOf(accounts: Accounts): string {
  if (accounts.every((account) => !account)) return "";
  const ofAccounts = accounts.map((account) =>
    account ? `${account.lamports} ${account.data.toString("base64")}` : "",
  );
  return hash("sha256", ofAccounts.join(), "base64");
}

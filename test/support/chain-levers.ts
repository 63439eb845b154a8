import { Rent } from "litesvm";
import { isFeePayerShort } from "../../src/chain/errors/transaction-error.ts";
import { coinAddressesOf } from "../../src/chain/launchpad/coin-addresses.ts";
import type { Chain, SandboxTransaction } from "../../src/sandbox/chain/chain.ts";

/**
 * How much of its lag the chain's time makes up in a slot: it is at most two block times ahead of
 * its parent's. Source: SIMD-0363.
 */
const MADE_UP_MS = 200;
/** Where a sharing config says whether it is active. */
const IS_ACTIVE = 10;

/** A clock for a chain that can stand still. */
export function createStandstill() {
  /** How far the chain's time is behind after it stood still. */
  let lagMs = 0;
  return {
    /** The time of the next block, in ms. */
    now(): number {
      const time = Date.now() - lagMs;
      lagMs = Math.max(0, lagMs - MADE_UP_MS);
      return time;
    },
    /**
     * Until the returned function is called, no slot passes and no transaction lands. The chain's
     * time then lags, and makes up 200 ms in each slot.
     */
    standStill(chain: Chain): () => void {
      const since = Date.now();
      const { send, advanceSlots } = chain;
      chain.send = () => "ClusterMaintenance";
      chain.advanceSlots = () => undefined;
      return () => {
        Object.assign(chain, { send, advanceSlots });
        lagMs += Date.now() - since;
      };
    },
  };
}

/** From now on, calls `listener` with each transaction right after it lands. */
export function onLanded(chain: Chain, listener: (transaction: SandboxTransaction) => void): void {
  const { land } = chain;
  chain.land = (transaction) => {
    land(transaction);
    listener(chain.landed(transaction.signature)!);
  };
}

/** Sets the rent in lamports per byte. Mainnet lowers it from time to time. */
export function setRent(chain: Chain, lamportsPerByte: number): void {
  chain.svm.setRent(new Rent(BigInt(lamportsPerByte), 1.0, 50));
}

/** Gives a curve a shorter layout, as those of older coins. */
export function shortenCurve(chain: Chain, mint: string, bytes: number): void {
  const { curve } = coinAddressesOf(mint);
  const { lamports, data, ...account } = chain.account(curve)!;
  const rent = chain.rentExemptMinimum(data.length) - chain.rentExemptMinimum(bytes);
  chain.setAccount(curve, {
    ...account,
    lamports: lamports - rent,
    data: data.subarray(0, bytes),
  });
}

/** Pauses a coin's sharing config, or activates it again. */
export function setPaused(chain: Chain, mint: string, isPaused: boolean): void {
  const { address } = coinAddressesOf(mint).sharingConfig;
  const account = chain.account(address)!;
  account.data[IS_ACTIVE] = isPaused ? 0 : 1;
  chain.setAccount(address, account);
}

/**
 * From now on a transaction whose fee payer cannot pay lands with its error and a fee of 0
 * (SIMD-0290). `withBalances` says whether `getTransaction` returns its balances.
 */
export function includeUnpaid(chain: Chain, { withBalances }: { withBalances: boolean }): void {
  const { send } = chain;
  chain.send = (transaction) => {
    const balances = withBalances ? transaction.message.accountKeys.map(chain.balance) : [];
    const err = send(transaction);
    if (err !== null && !chain.landed(transaction.signature) && isFeePayerShort(err))
      chain.land({
        ...transaction,
        ...{ err, feeLamports: 0n, logs: [], unitsConsumed: 0, innerInstructions: [] },
        ...{ preBalances: balances, postBalances: balances },
      });
    return err;
  };
}

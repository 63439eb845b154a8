import { toError } from "../../observability/thrown.ts";
import { withoutParent } from "../../observability/tracing.ts";
import type { Caller } from "../../fairness/caller.ts";
import type { Batches, Parts } from "../../fairness/chain-call-plan.ts";
import { inFairOrder } from "../../fairness/fair-order.ts";
import { afterFailure, backoffLeftMs, type Backoff } from "../../time/backoff.ts";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import type { Balances, BalanceWith } from "../balances/balances.ts";
import { untilAborted } from "../rpc/deadline.ts";
import { isOfAccount } from "../rpc/rpc-error.ts";
import { identityOf, takeOneCall, type WalletWithCoins } from "../balances/wallets.ts";
import {
  earliest,
  LONG_AGO,
  monotonicNow,
  type MonotonicTime,
  msBetween,
  msSince,
} from "../../time/monotonic.ts";

const PERIOD_MS = 2_000;
/** The wait after a failed read. Each further failure doubles it. */
const BACKOFF = { firstMs: 2_000, longestMs: 15_000 };

/** Tests pass shorter waits. The defaults are for production. */
export interface LiveWaits {
  /** How often a wallet is read while few are watched. */
  readonly livePeriodMs?: number | undefined;
}

interface Watched extends WalletWithCoins {
  /** The number of watchers, by address block. */
  readonly watchers: Map<string, number>;
  balance: BalanceWith | undefined;
  /** When the read of `balance` started. */
  readAt: MonotonicTime;
  /** When the last read started, successful or not. */
  triedAt: MonotonicTime;
  /** Increases with each balance that watchers should see. */
  version: number;
  /** Whether the last read failed. The next balance is then shown even if it has not changed. */
  isStale: boolean;
  /** Resolves after the next successful read. */
  nextRead: PromiseWithResolvers<undefined>;
}

export type LiveBalances = ReturnType<typeof createLiveBalances>;

/**
 * Watches balances for the whole process. The watchers of a wallet share all its reads except their
 * first. One read covers up to 32 wallets, fewer with coins. Each wallet is read every 2 s, or less
 * often if there are more than the plan of calls allows. Address blocks take turns, one wallet
 * each. During an outage nothing is shown, and one read at a time
 * probes the chain.
 */
export function createLiveBalances(
  needs: LiveWaits & {
    balances: Pick<Balances, "getBalances">;
    /** The plan's share of streams. Watchers' first reads are lookups. */
    batches: Pick<Batches, "turn" | "run">;
  },
) {
  const { balances, batches, livePeriodMs = PERIOD_MS } = needs;
  /** By {@link identityOf}; the wallet that was read longest ago comes first. */
  const wallets = new Map<string, Watched>();
  /** Wallets to read next. */
  const changedWallets = new Set<Watched>();
  let isReading = false;
  let timer: NodeJS.Timeout | undefined;
  let backoff: Backoff | undefined;

  function join(requestedWallet: WalletWithCoins, addressBlock: string): Watched {
    const wallet = wallets.get(identityOf(requestedWallet)) ?? {
      ...requestedWallet,
      ...{ watchers: new Map<string, number>(), balance: undefined, version: 0, isStale: false },
      ...{ readAt: LONG_AGO, triedAt: LONG_AGO, nextRead: Promise.withResolvers<undefined>() },
    };
    wallet.watchers.set(addressBlock, (wallet.watchers.get(addressBlock) ?? 0) + 1);
    return wallet;
  }

  function leave(wallet: Watched, addressBlock: string): void {
    const watchersLeft = (wallet.watchers.get(addressBlock) ?? 1) - 1;
    if (watchersLeft > 0) wallet.watchers.set(addressBlock, watchersLeft);
    else wallet.watchers.delete(addressBlock);
    if (wallet.watchers.size > 0) return;
    wallets.delete(identityOf(wallet));
    changedWallets.delete(wallet);
  }

  /**
   * The wallets in the order of their next reads: the `changedWallets`, those that are due, then
   * all others.
   */
  function inTurn(): Iterable<Watched> {
    const due = [...wallets.values()].filter(({ triedAt }) => msSince(triedAt) >= livePeriodMs);
    return new Set([...byBlock([...changedWallets]), ...byBlock(due), ...wallets.values()]);
  }

  /**
   * Sorts wallets so that address blocks take turns. The block whose last read is oldest comes
   * first.
   */
  function byBlock(some: readonly Watched[]): Watched[] {
    const readAt = new Map<string, MonotonicTime>();
    for (const { watchers, triedAt } of wallets.values())
      for (const block of watchers.keys()) readAt.set(block, triedAt);
    const turnOf = ({ watchers }: Watched) =>
      earliest(...watchers.keys().map((block) => readAt.get(block) ?? LONG_AGO));
    const oldestFirst = some.toSorted((a, b) => msBetween(turnOf(b), turnOf(a)));
    return inFairOrder(oldestFirst, ({ watchers }) => watchers.keys());
  }

  /** Returns whether the chain answered. */
  async function read(batch: readonly Watched[], watcher?: Caller): Promise<boolean> {
    const startedAt = monotonicNow();
    for (const wallet of batch) {
      wallet.triedAt = startedAt;
      changedWallets.delete(wallet);
      // Move the wallet to the end.
      wallets.delete(identityOf(wallet));
      wallets.set(identityOf(wallet), wallet);
    }
    const results = await balances
      .getBalances(batch, watcher)
      .catch((error: unknown) => batch.map(() => toError(error)));
    batch.forEach((wallet, i) => {
      const result = results[i];
      if (result && !(result instanceof Error)) show(wallet, result, startedAt);
      else if (!watcher?.signal.aborted) wallet.isStale = true;
    });
    return !results.every((result) => result instanceof Error && !isOfAccount(result));
  }

  function show(wallet: Watched, balance: BalanceWith, startedAt: MonotonicTime): void {
    // A later read may have been faster.
    if (startedAt < wallet.readAt) return;
    const before = wallet.balance?.(wallet.coins);
    const now = balance(wallet.coins);
    const isSame =
      before?.vault === now.vault &&
      before.pda === now.pda &&
      before.coins.length === now.coins.length &&
      before.coins.every(
        ({ stage, amount }, i) => stage === now.coins[i]?.stage && amount === now.coins[i].amount,
      );
    if (!isSame || wallet.isStale) wallet.version++;
    Object.assign(wallet, { balance, readAt: startedAt, isStale: false });
    wallet.nextRead.resolve(undefined);
    wallet.nextRead = Promise.withResolvers();
  }

  async function readNext(): Promise<void> {
    isReading = true;
    await batches.turn(() => []);
    const batch = takeOneCall(inTurn());
    const hasAnswered = await batches.run(partsOf(batch), () =>
      batch.length === 0 ? true : read(batch),
    );
    backoff = hasAnswered ? undefined : afterFailure(backoff, BACKOFF);
    isReading = false;
    schedule();
  }

  function schedule(): void {
    clearTimeout(timer);
    const [oldest] = wallets.values();
    if (isReading || !oldest) return;
    const waitMs = Math.max(
      changedWallets.size > 0 ? 0 : livePeriodMs - msSince(oldest.triedAt),
      backoffLeftMs(backoff),
    );
    timer = setTimeout(() => void withoutParent(readNext), waitMs).unref();
  }

  return {
    /**
     * Yields the balance of an account and its coins: first as read for this watcher, then after
     * each change and each outage. A slow watcher gets only the newest balance. Ends when `signal`
     * aborts.
     */
    watch(requestedWallet: WalletWithCoins, watcher: Caller): AsyncGenerator<BalanceWith> {
      const { signal, addressBlock } = watcher;
      const joinedAt = monotonicNow();
      const wallet = join(requestedWallet, addressBlock);
      const end = () => {
        leave(wallet, addressBlock);
      };
      if (signal.aborted) end();
      else {
        signal.addEventListener("abort", end, { once: true });
        void read([wallet], watcher).then(schedule);
      }
      return follow(wallet, joinedAt, signal);
    },

    /** Reads a watched account soon. Call this when the account's balance has changed. */
    refresh({ address }: AccountAddresses): void {
      for (const wallet of wallets.values())
        if (wallet.account.address === address) changedWallets.add(wallet);
      schedule();
    },
  };
}

/** The part of each block in a read of these wallets. */
function partsOf(batch: readonly Watched[]): Parts {
  const parts = new Map<string, number>();
  for (const { watchers } of batch)
    for (const block of watchers.keys())
      parts.set(block, (parts.get(block) ?? 0) + 1 / batch.length / watchers.size);
  return parts;
}

/** Yields a wallet's balances that were read after `joinedAt`: the newest, then each change. */
async function* follow(
  wallet: Watched,
  joinedAt: MonotonicTime,
  signal: AbortSignal,
): AsyncGenerator<BalanceWith> {
  let shownVersion: number | undefined;
  while (!signal.aborted) {
    const { balance, readAt, version, nextRead } = wallet;
    if (balance && readAt >= joinedAt && version !== shownVersion) {
      shownVersion = version;
      yield balance;
    } else await untilAborted(nextRead.promise, signal).catch(() => undefined);
  }
}

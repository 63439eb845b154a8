import { isDeepStrictEqual } from "node:util";
import { withoutParent } from "../../observability/tracing.ts";
import type { Caller } from "../../fairness/caller.ts";
import { partsOf, type Batches } from "../../fairness/chain-call-plan.ts";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import type { Balance, Balances, BalanceWith } from "../balances/balances.ts";
import { untilAborted } from "../../upstream/deadline.ts";
import { identityOf, partOfCall, takeOneCall, type WalletWithCoins } from "../balances/wallets.ts";
import {
  addMs,
  earliest,
  LONG_AGO,
  monotonicNow,
  type MonotonicTime,
  msBetween,
  msUntil,
  NEVER,
} from "../../time/monotonic.ts";

const PERIOD_MS = 2_000;

/** Tests pass shorter waits. The defaults are for production. */
export interface LiveWaits {
  /** How often a wallet is read while few are watched. */
  readonly livePeriodMs?: number | undefined;
}

interface Watched extends WalletWithCoins {
  readonly watchers: Set<Caller>;
  balance: BalanceWith | undefined;
  /** When the read of `balance` started. */
  readAt: MonotonicTime;
  /** When the next read is due; `LONG_AGO` if it comes before those of the block's others. */
  dueAt: MonotonicTime;
  /** Increases with each balance that watchers should see. */
  version: number;
  /** Whether the last read failed. The next balance is then shown even if it has not changed. */
  isStale: boolean;
  /** Resolves after the next successful read. */
  nextRead: PromiseWithResolvers<undefined>;
}

/** A balance of a watched account. */
interface WatchedBalance {
  readonly account: AccountAddresses;
  readonly balanceWith: BalanceWith;
}

/** No wallet has this version. */
const NOT_SHOWN = -1;

export type LiveBalances = ReturnType<typeof createLiveBalances>;

/**
 * Watches balances for the whole process. The watchers of a wallet share all its reads except their
 * first. One read covers up to 32 wallets, fewer with coins. Each wallet is read every 2 s, or less
 * often if there are more than the plan of calls allows. Then address blocks take turns, as for
 * lookups. During an outage nothing is shown.
 */
export function createLiveBalances(
  needs: LiveWaits & {
    balances: Pick<Balances, "getBalances">;
    /** The plan's share of streams. Watchers' first reads are lookups. */
    batches: Pick<Batches, "turn" | "inOrder" | "run">;
  },
) {
  const { balances, batches, livePeriodMs = PERIOD_MS } = needs;
  /** By {@link identityOf}. */
  const wallets = new Map<string, Watched>();
  let isReading = false;
  let timer: NodeJS.Timeout | undefined;

  function join(requestedWallet: WalletWithCoins, watcher: Caller): Watched {
    const id = identityOf(requestedWallet);
    const wallet = wallets.get(id) ?? {
      ...requestedWallet,
      watchers: new Set<Caller>(),
      balance: undefined,
      version: 0,
      isStale: false,
      readAt: LONG_AGO,
      nextRead: Promise.withResolvers<undefined>(),
      dueAt: addMs(monotonicNow(), livePeriodMs),
    };
    wallets.set(id, wallet);
    wallet.watchers.add(watcher);
    return wallet;
  }

  function leave(wallet: Watched, watcher: Caller): void {
    wallet.watchers.delete(watcher);
    if (wallet.watchers.size === 0) wallets.delete(identityOf(wallet));
  }

  /**
   * The wallets in the order of their next reads: those that are due, then others that may fill the
   * call.
   */
  function inTurn(): Watched[] {
    // Two wallets that come first have no difference.
    const byDueTime = (a: Watched, b: Watched) => msBetween(b.dueAt, a.dueAt) || 0;
    const sortedWallets = [...wallets.values()].sort(byDueTime);
    const now = monotonicNow();
    const due = sortedWallets.filter(({ dueAt }) => dueAt <= now);
    return [...batches.inOrder(due, blocksOf, partOfCall), ...sortedWallets.slice(due.length)];
  }

  /**
   * A read for a watcher changes nothing for the others if it fails: the watcher may have left at
   * once, or used its share of the plan.
   */
  async function read(batch: readonly Watched[], watcher?: Caller): Promise<void> {
    const startedAt = monotonicNow();
    const results = await balances.getBalances(batch, watcher);
    batch.forEach((wallet, i) => {
      const result = results[i];
      if (result && !(result instanceof Error)) show(wallet, result, startedAt);
      else if (!watcher) wallet.isStale = true;
    });
  }

  function show(wallet: Watched, balance: BalanceWith, startedAt: MonotonicTime): void {
    // A later read may have been faster.
    if (startedAt < wallet.readAt) return;
    const isSame =
      wallet.balance &&
      isDeepStrictEqual(amountsOf(wallet.balance(wallet.coins)), amountsOf(balance(wallet.coins)));
    if (!isSame || wallet.isStale) wallet.version++;
    Object.assign(wallet, { balance, readAt: startedAt, isStale: false });
    wallet.nextRead.resolve(undefined);
    wallet.nextRead = Promise.withResolvers();
  }

  async function readNext(): Promise<void> {
    isReading = true;
    await batches.turn();
    const batch = takeOneCall(inTurn());
    for (const wallet of batch) wallet.dueAt = addMs(monotonicNow(), livePeriodMs);
    await batches.run(partsOf(batch, blocksOf, partOfCall), () => read(batch));
    isReading = false;
    schedule();
  }

  function schedule(): void {
    clearTimeout(timer);
    if (isReading || wallets.size === 0) return;
    const dueAt = wallets.values().reduce((at, wallet) => earliest(at, wallet.dueAt), NEVER);
    timer = setTimeout(() => void withoutParent(readNext), Math.max(msUntil(dueAt), 0)).unref();
  }

  return {
    /**
     * Yields the balances of accounts and their coins, one at a time: each first as read for this
     * watcher, then after each change and each outage. A slow watcher gets only the newest
     * balances. Ends when `signal` aborts.
     */
    watch(
      requestedWallets: readonly WalletWithCoins[],
      watcher: Caller,
    ): AsyncGenerator<WatchedBalance> {
      const { signal } = watcher;
      const joinedAt = monotonicNow();
      const watchedWallets = requestedWallets.map((wallet) => join(wallet, watcher));
      const end = () => {
        for (const wallet of watchedWallets) leave(wallet, watcher);
      };
      if (signal.aborted) end();
      else {
        signal.addEventListener("abort", end, { once: true });
        void read(watchedWallets, watcher).then(schedule);
      }
      return follow(watchedWallets, joinedAt, signal);
    },

    /** Reads a watched account soon. Call this when the account's balance has changed. */
    refresh({ address }: AccountAddresses): void {
      for (const wallet of wallets.values())
        if (wallet.account.address === address) wallet.dueAt = LONG_AGO;
      schedule();
    },
  };
}

const amountsOf = ({ vault, pda, coins }: Balance) => [
  ...[vault, pda],
  ...coins.map(({ stage, amount }) => [stage, amount]),
];

const blocksOf = ({ watchers }: Watched) =>
  new Set(watchers.values().map(({ addressBlock }) => addressBlock));

/** Yields wallets' balances that were read after `joinedAt`: the newest, then each change. */
async function* follow(
  wallets: readonly Watched[],
  joinedAt: MonotonicTime,
  signal: AbortSignal,
): AsyncGenerator<WatchedBalance> {
  /** What was shown of each wallet. The wallet that was shown last comes last. */
  const shownVersions = new Map<Watched, number>(wallets.map((wallet) => [wallet, NOT_SHOWN]));
  const isNew = ([{ balance, readAt, version }, shownVersion]: [Watched, number]) =>
    balance && readAt >= joinedAt && version !== shownVersion;
  while (!signal.aborted) {
    const [wallet] = shownVersions.entries().find(isNew) ?? [];
    if (wallet?.balance) {
      shownVersions.delete(wallet);
      shownVersions.set(wallet, wallet.version);
      yield { account: wallet.account, balanceWith: wallet.balance };
    } else {
      const nextRead = Promise.race(wallets.map((each) => each.nextRead.promise));
      await untilAborted(nextRead, signal).catch(() => undefined);
    }
  }
}

import type { Logger } from "../../observability/log.ts";
import { createSemaphore, type Task } from "../../fairness/semaphore.ts";
import { CollectError, mayHaveMoved } from "../collect-error.ts";
import type { AccountAddresses } from "../addresses.ts";
import { toLamports, type Lamports } from "../lamports.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import { withDeadline } from "../rpc/deadline.ts";
import type { WalletWithCoins } from "../wallets.ts";
import type { Payers } from "./fee-budget.ts";
import {
  createStartCollect,
  type CollectNeeds,
  type InFlightCollect,
} from "./in-flight-collect.ts";
import type { CollectOutcome } from "./landed-outcome.ts";
import { type MonotonicTime, msSince } from "../../time/monotonic.ts";

/** What a caller asks for. */
interface CollectRequest extends WalletWithCoins {
  /** If no transaction would move as much for the account, none is sent. */
  readonly minimum?: Lamports | undefined;
}

export interface CollectCaller {
  /** The address block whose share of the fee budget pays. */
  readonly addressBlock: string;
  /**
   * The end user's address block; differs from `addressBlock` behind a trusted caller. A collect
   * includes only coins that one end user's block requested. Failures of these coins count against
   * that block, unless it is undefined.
   */
  readonly visitorBlock: string | undefined;
}

/** An account's collect, in flight or in the queue. */
interface AccountCollect {
  readonly task: Task<CollectOutcome>;
  /** Undefined while the collect is in the queue. */
  inFlight: InFlightCollect | undefined;
  /** The {@link CollectCaller.visitorBlock} of all callers who add to `coins`. */
  readonly visitorBlock: string | undefined;
  /**
   * The coins to collect, by mint. While the collect is in the queue, callers in `visitorBlock` add
   * their coins.
   */
  readonly coins: Map<string, CoinAddresses>;
  /** False if the collect leaves out all coins, because `visitorBlock` caused too many failures. */
  readonly mayName: boolean;
  readonly payers: Payers;
  /** The lowest minimum of all callers so far. */
  minimum: Lamports;
}

/** The most coins of a collect. One read has room for their keys and the account's own. */
const MAX_COINS = 19;

/** Each collect in flight makes a few chain calls per second and reserves a fee. */
const MAX_IN_FLIGHT = 200;
const MAX_WAITING = 1_000;

export type Collector = ReturnType<typeof createCollector>;

/**
 * Moves accounts' fees from their vaults to their addresses. The only part of the service that
 * spends money.
 *
 * No transaction is lost or doubled. An account has at most one transaction in flight: in this
 * process always, across all replicas while Redis is up. All callers share its outcome. A
 * transaction is signed once, and the same bytes are resent until it lands or expires. A collect in
 * flight has its own deadline and continues after all callers have left. When too many collects are
 * in flight, others wait in a queue that treats all address blocks equally.
 */
export function createCollector(needs: CollectNeeds) {
  const { backoff, metrics, collectTimeoutMs } = needs;
  const startCollect = createStartCollect(needs);
  const addTask = createSemaphore<CollectOutcome>({
    maxRunning: MAX_IN_FLIGHT,
    maxWaiting: MAX_WAITING,
    refuse: () => new CollectError({ kind: "too-many-in-flight" }),
  });
  /** All collects, by address. */
  const collects = new Map<string, AccountCollect>();
  const inFlight = () => [...collects.values()].flatMap((collect) => collect.inFlight ?? []);

  function add(
    account: AccountAddresses,
    { addressBlock, visitorBlock }: CollectCaller,
    minimum: Lamports,
    log: Logger | undefined,
  ): AccountCollect {
    const { address } = account;
    async function run(): Promise<CollectOutcome> {
      const wallet = { account, coins: [...collect.coins.values()] };
      const terms = { payers: collect.payers, minimum: () => collect.minimum };
      collect.inFlight = startCollect(wallet, terms, visitorBlock, log);
      try {
        const outcome = await collect.inFlight.outcome;
        metrics.ended(outcome.kind);
        return outcome;
      } catch (error) {
        metrics.ended(error instanceof CollectError ? error.result : "COLLECT_FAILED");
        throw error;
      }
    }
    const collect: AccountCollect = {
      task: addTask(run, () => collects.delete(address)),
      inFlight: undefined,
      visitorBlock,
      coins: new Map(),
      mayName: backoff.mayNameCoins(address, visitorBlock),
      payers: new Map([[addressBlock, undefined]]),
      minimum,
    };
    collects.set(address, collect);
    return collect;
  }

  /**
   * Waits for a collect until the caller times out. Returns undefined if the outcome is no result
   * for this caller: the budget refused all payers before this caller joined, or the transaction
   * may have landed before this caller asked.
   */
  async function join(
    collect: AccountCollect,
    addressBlock: string,
    startedAt: MonotonicTime,
  ): Promise<CollectOutcome | undefined> {
    const { task, payers } = collect;
    if (!payers.has(addressBlock)) payers.set(addressBlock, undefined);
    collect.inFlight?.asked();
    const leftMs = Math.max(0, collectTimeoutMs - msSince(startedAt));
    try {
      const outcome = await withDeadline(leftMs, (signal) =>
        task.join({ addressBlock, signal }).catch((error: unknown) => {
          throw error === signal.reason ? timeoutErrorOf(collect) : error;
        }),
      );
      return (await collect.inFlight!.isResultFor(startedAt)) ? outcome : undefined;
    } catch (error) {
      if (!isBudgetSpent(error)) throw error;
      const shortage = payers.get(addressBlock);
      if (!shortage) return undefined;
      throw new CollectError({ ...error.failure, ...shortage });
    }
  }

  return {
    /**
     * Collects the fees of an account and its coins, or joins the account's collect in flight. If
     * the joined collect does not cover the coins, another collect follows for all waiting callers
     * of the same `visitorBlock`. Blocks take turns, because callers wake in the order of their
     * requests. No block's coins can fail another block's collect. If the transaction would move
     * less than each waiting caller's minimum, nothing is simulated. A caller who joins a transaction
     * gets its outcome, whatever its own minimum. `addressBlock` pays, unless another block already
     * does. The caller waits at most `collectTimeoutMs` after its request's start (`startedAt`); the
     * collect itself continues. Logs to the first caller's `log`. Throws {@link CollectError}, {@link RpcError}, or an error that marks a
     * bug.
     */
    async collect(
      { account, coins, minimum = toLamports(0) }: CollectRequest,
      caller: CollectCaller,
      startedAt: MonotonicTime,
      log?: Logger,
    ): Promise<CollectOutcome> {
      const { addressBlock, visitorBlock } = caller;
      const own = new Set(coins.map(({ mint }) => mint));
      let joined: CollectOutcome | undefined;
      /**
       * Whether another block's collect has failed because of coins, or has left out coins of this
       * caller.
       */
      let isApart = false;
      for (;;) {
        if (msSince(startedAt) >= collectTimeoutMs) {
          if (joined?.kind === "collected") return joined;
          throw timeoutErrorOf(collects.get(account.address));
        }
        const current = collects.get(account.address);
        const collect = current ?? add(account, caller, minimum, log);
        if (minimum < collect.minimum) collect.minimum = minimum;
        const isOfBlock = collect.visitorBlock === visitorBlock;
        if (isOfBlock && !collect.inFlight)
          for (const coin of coins)
            if (collect.coins.size < MAX_COINS) collect.coins.set(coin.mint, coin);
        const isCovered =
          isOfBlock || (collect.mayName && !isApart)
            ? coins.every(({ mint }) => collect.coins.has(mint))
            : coins.length === 0 && !isApart;
        const outcome = await join(collect, addressBlock, startedAt).catch((error: unknown) => {
          if (isOfCoins(error, { hasOthersCoins: !isOfBlock && collect.coins.size > 0 })) {
            // Coins that other address blocks requested must not fail this caller.
            isApart ||= !isOfBlock;
            const { failure } = error;
            const isOfOthers = "mints" in failure && !failure.mints?.some((mint) => own.has(mint));
            if (current || !isOfBlock || isOfOthers) return undefined;
          }
          if (joined?.kind === "collected" && !mayHaveMoved(error)) return joined;
          throw error;
        });
        if (!outcome) continue;
        const below = outcome.kind === "nothing" ? outcome.belowMinimum : undefined;
        // The collect was given up before this caller joined, for a higher minimum.
        if (below !== undefined && below >= minimum && joined?.kind !== "collected") continue;
        if (outcome === joined) return outcome;
        const left = outcome.kind === "collected" ? outcome.remaining.map(({ mint }) => mint) : [];
        const missed = [...left, ...(collect.inFlight?.leftOut ?? [])];
        isApart ||= !isOfBlock && missed.some((mint) => own.has(mint));
        // Fees may have arrived after `current` read the vaults, but before this caller asked.
        const mayHaveMissed =
          current !== undefined && joined === undefined && outcome.kind === "nothing";
        if (isCovered && !mayHaveMissed && (isOfBlock || !isApart))
          return outcome.kind === "nothing" && joined?.kind === "collected" ? joined : outcome;
        if (outcome.kind === "collected" || !joined) joined = outcome;
      }
    },

    /** Resolves when no collect is in flight. */
    async settled(): Promise<void> {
      while (inFlight().length > 0)
        await Promise.allSettled(inFlight().map(({ outcome }) => outcome));
    },

    openSignatures: () => [...new Set(inFlight().flatMap((collect) => collect.signature() ?? []))],
  };
}

/**
 * Returns the error for a caller who times out. The error reports how far the account's collect has
 * come.
 */
function timeoutErrorOf(collect: AccountCollect | undefined): CollectError {
  return collect?.inFlight?.timeoutError() ?? new CollectError({ kind: "not-started" });
}

function isBudgetSpent(
  error: unknown,
): error is CollectError & { failure: { kind: "budget-spent" } } {
  return error instanceof CollectError && error.failure.kind === "budget-spent";
}

/**
 * Whether coins made a collect fail. With `hasOthersCoins`, also whether a collect without the
 * coins may succeed.
 */
function isOfCoins(
  error: unknown,
  { hasOthersCoins }: { hasOthersCoins: boolean },
): error is CollectError {
  if (!(error instanceof CollectError)) return false;
  const { failure } = error;
  if (failure.kind === "failed-on-chain") return failure.mints !== undefined;
  if (failure.kind === "coins-backing-off" || failure.kind === "distribution-in-flight")
    return true;
  const withOthersCoins = ["expired", "budget-spent", "lease-not-acquired", "timed-out"];
  return hasOthersCoins && withOthersCoins.includes(failure.kind);
}

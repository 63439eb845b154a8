import { CollectError } from "../collect-error.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import type { NamedWallet } from "../wallets.ts";
import type { Payers } from "./fee-budget.ts";
import { createStartCollect, type CollectNeeds, type InFlightCollect } from "./in-flight-collect.ts";
import type { CollectOutcome } from "./landed-outcome.ts";

type Waiter = PromiseWithResolvers<CollectOutcome>;

/** An account's collect in flight. */
interface Flight {
  readonly collect: InFlightCollect;
  /** The callers who have not timed out. Handlers of the collect's promise would stay until it settles. */
  readonly waiters: Set<Waiter>;
  /** The mints of the coins that it collects. */
  readonly mints: ReadonlySet<string>;
  /** Other coins that callers who joined have named, by mint. */
  readonly others: Map<string, CoinAddresses>;
  readonly payers: Payers;
}

/**
 * The most coins of a collect that callers share: with the account's own keys they fit into one read. The coins of the
 * caller who starts it come first.
 */
const MAX_COINS = 40;

/** Each collect in flight makes a few chain calls per second and reserves a fee. */
const MAX_IN_FLIGHT = 200;

export type Collector = ReturnType<typeof createCollector>;

/**
 * Moves accounts' fees from their vaults to their addresses. The only part of the service that spends money.
 *
 * No transaction is lost or doubled. An account has at most one in flight within this process, and on all replicas
 * while Redis is up; all its callers share its outcome. It is signed once, and the same bytes are resent until it
 * lands or expires. A collect has its own deadline and continues after all callers have left.
 */
export function createCollector(needs: CollectNeeds) {
  const { metrics, timeoutMs } = needs;
  const startCollect = createStartCollect(needs);
  const inFlight = new Map<string, Flight>();

  function start(wallet: NamedWallet, caller: string): Flight {
    if (inFlight.size >= MAX_IN_FLIGHT) throw new CollectError({ kind: "too-many-in-flight" });
    const { account, coins } = wallet;
    const payers: Payers = new Map([[caller, undefined]]);
    const collect = startCollect(wallet, payers);
    const waiters = new Set<Waiter>();
    const mints = new Set(coins.map(({ mint }) => mint));
    const flight = { collect, waiters, mints, others: new Map<string, CoinAddresses>(), payers };
    inFlight.set(account.address, flight);
    const end = (result: string) => {
      inFlight.delete(account.address);
      metrics.ended(result);
    };
    collect.outcome.then(
      (outcome) => {
        end(outcome.kind);
        for (const { resolve } of waiters) resolve(outcome);
      },
      (error: unknown) => {
        end(toResult(error));
        for (const { reject } of waiters) reject(error);
      },
    );
    return flight;
  }

  /**
   * Waits for a collect until the caller times out. Undefined when another caller's share of the fee budget was used
   * up, and this caller joined too late to pay.
   */
  async function join(
    { collect, waiters, payers }: Flight,
    caller: string,
    startedAt: number,
  ): Promise<CollectOutcome | undefined> {
    if (!payers.has(caller)) payers.set(caller, undefined);
    const waiter: Waiter = Promise.withResolvers();
    waiters.add(waiter);
    const timer = setTimeout(
      () => {
        waiter.reject(collect.timeoutError());
      },
      Math.max(0, startedAt + timeoutMs - performance.now()),
    );
    try {
      return await waiter.promise;
    } catch (error) {
      if (!isBudgetSpent(error) || error.failure.scope === "SERVICE") throw error;
      const shortage = payers.get(caller);
      if (!shortage) return undefined;
      throw new CollectError({ ...error.failure, ...shortage });
    } finally {
      clearTimeout(timer);
      waiters.delete(waiter);
    }
  }

  return {
    /**
     * Collects the fees of an account and its coins, or joins the account's collect in flight. If that does not cover
     * the coins, one more collect follows for all who named others. The cost counts in the share of `caller` (a block
     * of addresses), unless it joins a collect that another caller pays for. Settles within `timeoutMs` of `startedAt`
     * (`performance.now()` at the request's start, so that all collects of a request share one timeout); the collect
     * continues. Throws {@link CollectError}, {@link RpcError}, or an error that marks a bug.
     */
    async collect(
      { account, coins }: NamedWallet,
      caller: string,
      startedAt: number,
    ): Promise<CollectOutcome> {
      const own = coins.map((coin) => [coin.mint, coin] as const);
      let wanted = new Map(own);
      let joined: CollectOutcome | undefined;
      for (;;) {
        if (performance.now() >= startedAt + timeoutMs) {
          if (joined?.kind === "collected") return joined;
          throw new CollectError({ kind: "not-started" });
        }
        const running = inFlight.get(account.address);
        const flight = running ?? start({ account, coins: [...wanted.values()].slice(0, MAX_COINS) }, caller);
        const others = own.filter(([mint]) => !flight.mints.has(mint));
        for (const [mint, coin] of others) flight.others.set(mint, coin);
        const outcome = await join(flight, caller, startedAt);
        if (!outcome) continue;
        // Fees may have arrived after it read the vaults, and before this caller asked.
        const mayHaveMissed = running !== undefined && joined === undefined && outcome.kind === "nothing";
        if (others.length === 0 && !mayHaveMissed)
          return outcome.kind === "nothing" && joined?.kind === "collected" ? joined : outcome;
        joined = outcome;
        wanted = new Map([...own, ...flight.others]);
      }
    },

    /** Resolves when no collect is in flight. */
    async settled(): Promise<void> {
      while (inFlight.size > 0)
        await Promise.allSettled([...inFlight.values()].map(({ collect }) => collect.outcome));
    },

    /** The signatures of the transactions in flight. */
    openSignatures: () => [...inFlight.values()].flatMap(({ collect }) => collect.signature() ?? []),
  };
}

function isBudgetSpent(error: unknown): error is CollectError & { failure: { kind: "budget-spent" } } {
  return error instanceof CollectError && error.failure.kind === "budget-spent";
}

/** The result that the metrics count for a failed collect. */
function toResult(error: unknown): string {
  if (isBudgetSpent(error)) return "refused";
  return error instanceof CollectError ? error.code : "COLLECT_FAILED";
}

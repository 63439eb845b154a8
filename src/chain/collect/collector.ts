import { inFairOrder } from "../../upstream/fair-order.ts";
import { CollectError } from "../collect-error.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import type { WalletWithCoins } from "../wallets.ts";
import type { Payers } from "./fee-budget.ts";
import { createStartCollect, type CollectNeeds, type InFlightCollect } from "./in-flight-collect.ts";
import type { CollectOutcome } from "./landed-outcome.ts";

type Waiter = PromiseWithResolvers<CollectOutcome>;

/** An account's collect, in flight or in the queue, with all who wait for it. */
interface AccountCollect {
  readonly wallet: WalletWithCoins;
  /** Undefined in the queue. */
  inFlight: InFlightCollect | undefined;
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
/** The most collects that wait until fewer are in flight. */
const MAX_WAITING = 1_000;

export type Collector = ReturnType<typeof createCollector>;

/**
 * Moves accounts' fees from their vaults to their addresses. The only part of the service that spends money.
 *
 * No transaction is lost or doubled. An account has at most one in flight within this process, and on all replicas
 * while Redis is up; all its callers share its outcome. It is signed once, and the same bytes are resent until it
 * lands or expires. A collect in flight has its own deadline and continues after all callers have left. When too many
 * are in flight, others wait in a queue, in which each address block has an equal part.
 */
export function createCollector(needs: CollectNeeds) {
  const { metrics, timeoutMs } = needs;
  const startCollect = createStartCollect(needs);
  /** All collects, by address. */
  const collects = new Map<string, AccountCollect>();
  const running = new Set<AccountCollect>();
  const waiting = new Set<AccountCollect>();

  function add(wallet: WalletWithCoins, addressBlock: string): AccountCollect {
    const collect: AccountCollect = {
      wallet,
      inFlight: undefined,
      waiters: new Set(),
      mints: new Set(wallet.coins.map(({ mint }) => mint)),
      others: new Map(),
      payers: new Map([[addressBlock, undefined]]),
    };
    collects.set(wallet.account.address, collect);
    waiting.add(collect);
    return collect;
  }

  /** Starts as many waiting collects as may be in flight, and refuses those that do not fit into the queue. */
  function startWaiting(): void {
    while (waiting.size > 0 && running.size < MAX_IN_FLIGHT) start(nextWaiting());
    if (waiting.size <= MAX_WAITING) return;
    for (const collect of inFairOrder([...waiting], blocksOf).slice(MAX_WAITING)) {
      remove(collect);
      for (const { reject } of collect.waiters) reject(new CollectError({ kind: "too-many-in-flight" }));
    }
  }

  /** The oldest waiting collect of the address blocks with the fewest collects in flight. */
  function nextWaiting(): AccountCollect {
    const counts = new Map<string, number>();
    for (const collect of running)
      for (const block of blocksOf(collect)) counts.set(block, (counts.get(block) ?? 0) + 1);
    const countOf = (collect: AccountCollect) =>
      Math.min(...blocksOf(collect).map((each) => counts.get(each) ?? 0));
    return [...waiting].reduce((best, collect) => (countOf(collect) < countOf(best) ? collect : best));
  }

  function remove(collect: AccountCollect): void {
    collects.delete(collect.wallet.account.address);
    running.delete(collect);
    waiting.delete(collect);
  }

  function start(collect: AccountCollect): void {
    const { wallet, waiters, payers } = collect;
    waiting.delete(collect);
    running.add(collect);
    collect.inFlight = startCollect(wallet, payers);
    const end = (result: string) => {
      remove(collect);
      metrics.ended(result);
      startWaiting();
    };
    collect.inFlight.outcome.then(
      (outcome) => {
        end(outcome.kind);
        for (const { resolve } of waiters) resolve(outcome);
      },
      (error: unknown) => {
        end(toResult(error));
        for (const { reject } of waiters) reject(error);
      },
    );
  }

  /**
   * Waits for a collect until the caller times out. Undefined when the part of the fee budget of another block was used
   * up, and this block joined too late to pay.
   */
  async function join(
    collect: AccountCollect,
    addressBlock: string,
    startedAt: number,
  ): Promise<CollectOutcome | undefined> {
    const { waiters, payers } = collect;
    if (!payers.has(addressBlock)) payers.set(addressBlock, undefined);
    const waiter: Waiter = Promise.withResolvers();
    waiters.add(waiter);
    startWaiting();
    const timer = setTimeout(
      () => {
        waiter.reject(collect.inFlight?.timeoutError() ?? new CollectError({ kind: "not-started" }));
      },
      Math.max(0, startedAt + timeoutMs - performance.now()),
    );
    try {
      return await waiter.promise;
    } catch (error) {
      if (!isBudgetSpent(error) || error.failure.scope === "SERVICE") throw error;
      const shortage = payers.get(addressBlock);
      if (!shortage) return undefined;
      throw new CollectError({ ...error.failure, ...shortage });
    } finally {
      clearTimeout(timer);
      waiters.delete(waiter);
      if (waiters.size === 0 && waiting.has(collect)) remove(collect);
    }
  }

  return {
    /**
     * Collects the fees of an account and its coins, or joins the account's collect in flight. If that does not cover
     * the coins, one more collect follows for all who named others. The cost counts in the part of `addressBlock`,
     * unless it joins a collect that another block pays for. Settles within `timeoutMs` of `startedAt`
     * (`performance.now()` at the request's start, so that all collects of a request share one timeout); the collect
     * continues. Throws {@link CollectError}, {@link RpcError}, or an error that marks a bug.
     */
    async collect(
      { account, coins }: WalletWithCoins,
      addressBlock: string,
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
        const current = collects.get(account.address);
        const collect =
          current ?? add({ account, coins: [...wanted.values()].slice(0, MAX_COINS) }, addressBlock);
        const others = own.filter(([mint]) => !collect.mints.has(mint));
        for (const [mint, coin] of others) collect.others.set(mint, coin);
        const outcome = await join(collect, addressBlock, startedAt);
        if (!outcome) continue;
        // Fees may have arrived after it read the vaults, and before this caller asked.
        const mayHaveMissed = current !== undefined && joined === undefined && outcome.kind === "nothing";
        if (others.length === 0 && !mayHaveMissed)
          return outcome.kind === "nothing" && joined?.kind === "collected" ? joined : outcome;
        joined = outcome;
        wanted = new Map([...own, ...collect.others]);
      }
    },

    /** Resolves when no collect is in flight. */
    async settled(): Promise<void> {
      while (running.size > 0)
        await Promise.allSettled([...running].map(({ inFlight }) => inFlight!.outcome));
    },

    /** The signatures of the transactions in flight. */
    openSignatures: () => [...new Set([...running].flatMap(({ inFlight }) => inFlight?.signature() ?? []))],
  };
}

const blocksOf = ({ payers }: AccountCollect) => [...payers.keys()];

function isBudgetSpent(error: unknown): error is CollectError & { failure: { kind: "budget-spent" } } {
  return error instanceof CollectError && error.failure.kind === "budget-spent";
}

/** The result that the metrics count for a failed collect. */
function toResult(error: unknown): string {
  if (isBudgetSpent(error)) return "refused";
  return error instanceof CollectError ? error.code : "COLLECT_FAILED";
}

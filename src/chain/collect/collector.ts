import { createSemaphore } from "../../upstream/semaphore.ts";
import { CollectError } from "../collect-error.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import type { WalletWithCoins } from "../wallets.ts";
import type { Payers } from "./fee-budget.ts";
import { createStartCollect, type CollectNeeds, type InFlightCollect } from "./in-flight-collect.ts";
import type { CollectOutcome } from "./landed-outcome.ts";

type Waiter = PromiseWithResolvers<CollectOutcome>;

/** An account's collect, in flight or in the queue, with all who wait for it. */
interface AccountCollect {
  readonly address: string;
  readonly outcome: Promise<CollectOutcome>;
  /** Undefined in the queue. */
  inFlight: InFlightCollect | undefined;
  /** Takes it out of the queue. */
  readonly abandoned: AbortController;
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
 * are in flight, others wait in a queue, which callers share equally.
 */
export function createCollector(needs: CollectNeeds) {
  const { metrics, timeoutMs } = needs;
  const startCollect = createStartCollect(needs);
  const runInTurn = createSemaphore({
    maxRunning: MAX_IN_FLIGHT,
    maxWaiting: MAX_WAITING,
    refuse: () => new CollectError({ kind: "too-many-in-flight" }),
  });
  /** All collects, by address. */
  const collects = new Map<string, AccountCollect>();

  function forget(collect: AccountCollect): void {
    if (collects.get(collect.address) === collect) collects.delete(collect.address);
  }

  function add(wallet: WalletWithCoins, addressBlock: string): AccountCollect {
    const payers: Payers = new Map([[addressBlock, undefined]]);
    const abandoned = new AbortController();
    const start = () => {
      collect.inFlight = startCollect(wallet, payers);
      return collect.inFlight.outcome;
    };
    const collect: AccountCollect = {
      address: wallet.account.address,
      outcome: runInTurn(start, { blocks: () => payers.keys(), signal: abandoned.signal }),
      inFlight: undefined,
      abandoned,
      waiters: new Set(),
      mints: new Set(wallet.coins.map(({ mint }) => mint)),
      others: new Map(),
      payers,
    };
    collects.set(collect.address, collect);
    const end = (result: string) => {
      forget(collect);
      if (collect.inFlight) metrics.ended(result);
    };
    collect.outcome.then(
      (outcome) => {
        end(outcome.kind);
        for (const { resolve } of collect.waiters) resolve(outcome);
      },
      (error: unknown) => {
        end(toResult(error));
        for (const { reject } of collect.waiters) reject(error);
      },
    );
    return collect;
  }

  /**
   * Waits for a collect until the caller times out. Undefined when another block's part of the fee budget was used
   * up, and this caller joined too late to pay.
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
      if (waiters.size === 0 && !collect.inFlight) {
        forget(collect);
        collect.abandoned.abort();
      }
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
      while (collects.size > 0)
        await Promise.allSettled([...collects.values()].map(({ outcome }) => outcome));
    },

    /** The signatures of the transactions in flight. */
    openSignatures: () => [
      ...new Set([...collects.values()].flatMap(({ inFlight }) => inFlight?.signature() ?? [])),
    ],
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

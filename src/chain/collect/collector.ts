import type { Logger } from "../../observability/log.ts";
import { createSemaphore, type Task } from "../../upstream/semaphore.ts";
import { CollectError } from "../collect-error.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import type { WalletWithCoins } from "../wallets.ts";
import type { Payers } from "./fee-budget.ts";
import { createStartCollect, type CollectNeeds, type InFlightCollect } from "./in-flight-collect.ts";
import type { CollectOutcome } from "./landed-outcome.ts";

/** A coin, and the address blocks of the callers who named it. */
interface NamedCoin {
  readonly coin: CoinAddresses;
  readonly blocks: ReadonlySet<string>;
}

/** An account's collect, in flight or in the queue. */
interface AccountCollect {
  readonly task: Task<CollectOutcome>;
  /** Undefined in the queue. */
  inFlight: InFlightCollect | undefined;
  /** The mints of the coins that it collects, without those that it leaves out because of who named them. */
  readonly mints: ReadonlySet<string>;
  /** Other coins that callers who joined have named, by mint. */
  readonly others: Map<string, NamedCoin>;
  readonly payers: Payers;
}

/**
 * The most coins of a collect that callers share: with the account's own keys they fit into one read. The coins of the
 * caller who starts it come first.
 */
const MAX_COINS = 19;

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
  const { backoff, metrics, timeoutMs } = needs;
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
    coins: readonly NamedCoin[],
    addressBlock: string,
    log: Logger | undefined,
  ): AccountCollect {
    const { address } = account;
    const payers: Payers = new Map([[addressBlock, undefined]]);
    async function run(): Promise<CollectOutcome> {
      const wallet = { account, coins: coins.map(({ coin }) => coin) };
      const blocks = new Map(coins.map((named) => [named.coin.mint, named.blocks]));
      collect.inFlight = startCollect(wallet, payers, (mint) => blocks.get(mint) ?? new Set(), log);
      try {
        const outcome = await collect.inFlight.outcome;
        metrics.ended(outcome.kind);
        return outcome;
      } catch (error) {
        metrics.ended(toResult(error));
        throw error;
      }
    }
    const collect: AccountCollect = {
      task: addTask(run, () => collects.delete(address)),
      inFlight: undefined,
      mints: new Set(
        coins.filter(({ blocks }) => backoff.mayNameCoins(address, blocks)).map(({ coin }) => coin.mint),
      ),
      others: new Map(),
      payers,
    };
    collects.set(address, collect);
    return collect;
  }

  /**
   * Waits for a collect until the caller times out. Undefined when the fee budget does not allow the other blocks to pay,
   * and this caller joined too late to be asked.
   */
  async function join(
    collect: AccountCollect,
    addressBlock: string,
    startedAt: number,
  ): Promise<CollectOutcome | undefined> {
    const { task, payers } = collect;
    if (!payers.has(addressBlock)) payers.set(addressBlock, undefined);
    const timeout = new AbortController();
    const timer = setTimeout(
      () => {
        timeout.abort(collect.inFlight?.timeoutError() ?? new CollectError({ kind: "not-started" }));
      },
      Math.max(0, startedAt + timeoutMs - performance.now()),
    );
    try {
      return await task.join({ addressBlock, signal: timeout.signal });
    } catch (error) {
      if (!isBudgetSpent(error)) throw error;
      const shortage = payers.get(addressBlock);
      if (!shortage) return undefined;
      throw new CollectError({ ...error.failure, ...shortage });
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    /**
     * Collects the fees of an account and its coins, or joins the account's collect in flight. If that does not cover
     * the coins, one more collect follows for all who named others. The cost counts in the part of `addressBlock`,
     * unless it joins a collect that another block pays for. Settles within `timeoutMs` of `startedAt`
     * (`performance.now()` at the request's start, so that all collects of a request share one timeout); the collect
     * continues. What the collect logs goes to `log` of the caller who started it. Throws {@link CollectError}, {@link RpcError}, or an error that marks a bug.
     */
    async collect(
      { account, coins }: WalletWithCoins,
      addressBlock: string,
      startedAt: number,
      log?: Logger,
    ): Promise<CollectOutcome> {
      const blocks: ReadonlySet<string> = new Set([addressBlock]);
      const own = coins.map((coin) => [coin.mint, { coin, blocks }] as const);
      let wanted = new Map(own);
      let joined: CollectOutcome | undefined;
      for (;;) {
        if (performance.now() >= startedAt + timeoutMs) {
          if (joined?.kind === "collected") return joined;
          throw new CollectError({ kind: "not-started" });
        }
        const current = collects.get(account.address);
        const collect = current ?? add(account, [...wanted.values()].slice(0, MAX_COINS), addressBlock, log);
        const others = own.filter(([mint]) => current && !collect.mints.has(mint));
        for (const [mint, { coin }] of others) {
          const named = collect.others.get(mint)?.blocks ?? [];
          collect.others.set(mint, { coin, blocks: new Set([...named, addressBlock]) });
        }
        const outcome = await join(collect, addressBlock, startedAt).catch((error: unknown) => {
          if (!isOfCoins(error)) throw error;
          // Coins that others named must not fail this caller.
          if (current) return undefined;
          if (joined?.kind === "collected" && error.failure.kind === "coins-backing-off") return joined;
          throw error;
        });
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
      while (inFlight().length > 0) await Promise.allSettled(inFlight().map(({ outcome }) => outcome));
    },

    /** The signatures of the transactions in flight. */
    openSignatures: () => [...new Set(inFlight().flatMap((collect) => collect.signature() ?? []))],
  };
}

function isBudgetSpent(error: unknown): error is CollectError & { failure: { kind: "budget-spent" } } {
  return error instanceof CollectError && error.failure.kind === "budget-spent";
}

/** Whether a collect failed because of coins. */
function isOfCoins(error: unknown): error is CollectError {
  if (!(error instanceof CollectError)) return false;
  const { failure } = error;
  return (
    failure.kind === "coins-backing-off" ||
    (failure.kind === "failed-on-chain" && failure.mints !== undefined)
  );
}

/** The result that the metrics count for a failed collect. */
function toResult(error: unknown): string {
  if (isBudgetSpent(error)) return "refused";
  return error instanceof CollectError ? error.code : "COLLECT_FAILED";
}

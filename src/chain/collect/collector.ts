import type { AccountAddresses } from "../addresses.ts";
import { CollectError } from "../collect-error.ts";
import { createStartCollect, type CollectNeeds, type InFlightCollect } from "./in-flight-collect.ts";
import type { CollectOutcome } from "./landed-outcome.ts";

type Waiter = PromiseWithResolvers<CollectOutcome>;

/** An account's collect in flight. */
interface Flight {
  readonly collect: InFlightCollect;
  /** The callers who have not timed out. Handlers of the collect's promise would stay until it settles. */
  readonly waiters: Set<Waiter>;
}

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

  function start(account: AccountAddresses): Flight {
    if (inFlight.size >= MAX_IN_FLIGHT) throw new CollectError({ kind: "too-many-in-flight" });
    const collect = startCollect(account);
    const waiters = new Set<Waiter>();
    const flight = { collect, waiters };
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
        end(error instanceof CollectError ? error.code : "COLLECT_FAILED");
        for (const { reject } of waiters) reject(error);
      },
    );
    return flight;
  }

  /** Waits for a collect until the caller times out. */
  async function join({ collect, waiters }: Flight, startedAt: number): Promise<CollectOutcome> {
    const waiter: Waiter = Promise.withResolvers();
    waiters.add(waiter);
    const timer = setTimeout(
      () => {
        waiter.reject(collect.timeoutError());
      },
      startedAt + timeoutMs - performance.now(),
    );
    try {
      return await waiter.promise;
    } finally {
      clearTimeout(timer);
      waiters.delete(waiter);
    }
  }

  return {
    /**
     * Collects an account's fees, or joins the account's collect in flight. Settles within `timeoutMs` of
     * `startedAt` (`performance.now()` at the request's start, so that all collects of a request share one
     * timeout); the collect continues. Throws {@link CollectError}, {@link RpcError}, or an error that marks a bug.
     */
    async collect(account: AccountAddresses, startedAt: number): Promise<CollectOutcome> {
      if (performance.now() >= startedAt + timeoutMs) throw new CollectError({ kind: "not-started" });
      const running = inFlight.get(account.address);
      const outcome = await join(running ?? start(account), startedAt);
      if (!running || outcome.kind !== "nothing") return outcome;
      // Fees may have arrived after it read the vaults, and before this caller asked.
      return join(inFlight.get(account.address) ?? start(account), startedAt);
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

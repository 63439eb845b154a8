import type { AccountAddresses } from "../addresses.ts";
import { CollectError } from "../collect-error.ts";
import {
  createStartCollect,
  type CollectNeeds,
  type CollectOutcome,
  type InFlightCollect,
} from "./in-flight-collect.ts";

/** Each collect in flight makes a few chain calls per second and reserves a fee. */
const MAX_IN_FLIGHT = 200;

export type Collector = ReturnType<typeof createCollector>;

/**
 * Moves accounts' fees from their vaults to their addresses. The only part of the service that spends money.
 *
 * No transaction is lost or doubled. An account has at most one in flight, and every caller on every replica
 * shares its outcome. It is signed once, and the same bytes are resent until it lands or expires, even after
 * all callers have left.
 */
export function createCollector(needs: CollectNeeds) {
  const { metrics, timeoutMs } = needs;
  const startCollect = createStartCollect(needs);
  const inFlight = new Map<string, InFlightCollect>();

  function start(account: AccountAddresses): InFlightCollect {
    if (inFlight.size >= MAX_IN_FLIGHT) throw new CollectError({ kind: "too-many-in-flight" });
    const collect = startCollect(account);
    inFlight.set(account.address, collect);
    const end = (result: string) => {
      inFlight.delete(account.address);
      metrics.ended(result);
    };
    collect.outcome.then(
      ({ kind }) => {
        end(kind);
      },
      (error: unknown) => {
        end(error instanceof CollectError ? error.code : "COLLECT_FAILED");
      },
    );
    return collect;
  }

  return {
    /**
     * Collects an account's fees, or joins the account's collect in flight. Settles within `timeoutMs` of
     * `startedAt` (`performance.now()` at the request's start, so that all collects of a request share one
     * timeout); a transaction that was sent is still confirmed. Throws {@link CollectError},
     * {@link RpcError}, or an error that marks a bug.
     */
    async collect(account: AccountAddresses, startedAt: number): Promise<CollectOutcome> {
      const leftMs = startedAt + timeoutMs - performance.now();
      if (leftMs <= 0) throw new CollectError({ kind: "not-started" });
      const collect = inFlight.get(account.address) ?? start(account);
      const outcome = await within(leftMs, collect.outcome);
      if (!outcome) throw collect.giveUp();
      return outcome;
    },

    /** Resolves when no collect is in flight. */
    async settled(): Promise<void> {
      while (inFlight.size > 0)
        await Promise.allSettled([...inFlight.values()].map(({ outcome }) => outcome));
    },

    /** The signatures of the transactions in flight. */
    openSignatures: () => [...inFlight.values()].flatMap((collect) => collect.signature() ?? []),
  };
}

/** The promise's value, or undefined after `timeoutMs`. */
async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, undefined);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

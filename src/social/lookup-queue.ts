import { inFairOrder } from "../fairness/fair-order.ts";
import { reasonOf } from "../observability/thrown.ts";
import { monotonicNow, type MonotonicTime } from "../time/monotonic.ts";
import { createBatcher, type KeyOwner } from "../upstream/batcher.ts";
import type { AccountKey, SocialAccount } from "./account.ts";
import { MAX_USERS_PER_CALL, type SocialClient } from "./api-client.ts";

/** A request that waits for accounts. */
export interface Queuer extends KeyOwner {
  readonly signal: AbortSignal;
  /** After this time accounts are refused instead of requested. */
  readonly sendBefore: MonotonicTime;
  /** Called once for each key that this request was the first to load; with the answer if sent. */
  readonly onEnd?: ((answer?: SocialAccount | Error) => void) | undefined;
}

/**
 * How long a key waits for its call to fill while calls are in flight: long, because calls are few
 * (300 in 15 minutes).
 */
const MAX_WAIT_MS = 150;
/** If a call takes a second, four at once use up 300 calls in 75 seconds. */
const MAX_CALLS = 4;

/**
 * Merges the keys of concurrent callers into few calls, at most `socialConcurrency` in flight. Every
 * call also waits for the call quota. If more keys wait than fit into a call, the call takes equally
 * many of each address block. Beyond `socialQueueMax`, the queue refuses the newest keys of the
 * blocks with the most keys.
 */
export function createLookupQueue(needs: {
  ask: (keys: readonly AccountKey[]) => Promise<ReadonlyMap<AccountKey, SocialAccount | Error>>;
  /** Resolves when the next call may be made; undefined if that is now. */
  turn: SocialClient["turn"];
  socialConcurrency?: number | undefined;
  socialQueueMax: number;
  /** The error of a key that does not fit into the queue, or is not sent in time. */
  refuse: () => Error;
}) {
  const { socialConcurrency = MAX_CALLS, socialQueueMax, refuse } = needs;
  let waitsForQuota = false;
  const isLate = ({ sendBefore }: Queuer) => sendBefore < monotonicNow();
  return createBatcher<AccountKey, SocialAccount, Queuer>({
    async ask(keys, answer) {
      const answers = await needs.ask(keys);
      keys.forEach((key, i) => {
        const value = answers.get(key);
        if (value) answer(i, value);
      });
    },
    idOf: (key) => key,
    maxKeys: MAX_USERS_PER_CALL,
    maxCalls: socialConcurrency,
    maxWaitMs: MAX_WAIT_MS,
    joinsInFlight: true,
    policy: {
      turn() {
        const turn = needs.turn();
        waitsForQuota = turn !== undefined;
        return turn?.finally(() => (waitsForQuota = false));
      },
      inOrder: (waiting) =>
        inFairOrder(waiting, ({ owners }) => new Set([...owners].flatMap(({ blocks }) => blocks))),
      refusalOf: ({ owners }) => ([...owners].every(isLate) ? refuse() : undefined),
      maxWaiting: () => socialQueueMax,
      refuse,
      reasonToLeave: (queuer) =>
        waitsForQuota && isLate(queuer) ? refuse() : reasonOf(queuer.signal),
      onEnd: ({ onEnd }, answer) => onEnd?.(answer),
    },
  });
}

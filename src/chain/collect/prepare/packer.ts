import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { memoize } from "../../../store/memoize.ts";
import { createBatcher } from "../../batcher.ts";
import { createPlanner, type PlanResult, type SignedCollect } from "./plan.ts";
import type { Candidate } from "./prospect.ts";

/** This many accounts without the AMM's part fit into a transaction of version 1. */
const MAX_ACCOUNTS = 30;
/** Transactions that are being prepared at once: a call that hangs must not hold up the others. */
const MAX_PREPARING = 32;
/** The longest that an account waits for others while transactions are being prepared. */
const MAX_WAIT_MS = 50;
/** How long accounts gather first while transactions are in flight. */
const GATHER_MS = 100;
/** How long an account that disturbed a shared transaction gets its own from the start. */
const APART_MS = 600_000;
const MAX_APART = 10_000;

export type Packer = ReturnType<typeof createPacker>;

/**
 * Signs collects. Collects of different accounts that are ready at the same moment are planned together, as many as fit
 * into a transaction. A collect that finds no transaction in flight or being prepared does not wait; otherwise collects
 * gather for a moment. An account with sweeps, or that has disturbed others in the last ten minutes, is planned at once.
 */
export function createPacker(needs: Omit<Parameters<typeof createPlanner>[0], "apart">) {
  const { feePayer } = needs;
  const apart = new LRUCache<string, true>({ max: MAX_APART, ttl: APART_MS });
  const plan = createPlanner({ ...needs, apart });
  /** Resolves at the same moment for all calls within `GATHER_MS`. */
  const gather = memoize(() => sleep(GATHER_MS), GATHER_MS);
  const batcher = createBatcher<Candidate, Exclude<PlanResult, Error>>({
    ask: plan,
    // An account has at most one collect in flight.
    idOf: addressOf,
    maxKeys: MAX_ACCOUNTS,
    maxCalls: MAX_PREPARING,
    maxWaitMs: MAX_WAIT_MS,
  });

  return {
    /**
     * Simulates and signs the collect of an account, by itself or together with others; undefined when it would move too
     * little. Throws {@link CollectError}, {@link RpcError}, or an error that marks a bug.
     */
    async sign(
      candidate: Candidate,
      { isAlone = false }: { isAlone?: boolean } = {},
    ): Promise<SignedCollect | undefined> {
      let result: PlanResult;
      if (isAlone || candidate.prospect.part.sweeps.length > 0 || apart.has(addressOf(candidate))) {
        await plan([candidate], (_, each) => {
          result = each;
        });
      } else {
        if (feePayer.hasInFlight()) await gather();
        [result] = await batcher.load([candidate]);
      }
      if (result instanceof Error) throw result;
      return result;
    },
  };
}

const addressOf = ({ prospect }: Candidate): string => prospect.wallet.account.address;

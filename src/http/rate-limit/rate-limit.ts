import type { GraphQLResolveInfo } from "graphql";
import { getGraphQLRateLimiter } from "graphql-rate-limit";
import { ContractError, retryIn, toRetryAfterSeconds } from "../../contract/contract-error.ts";
import type { BudgetScope } from "../../fairness/budget.ts";
import type { RateLimitState } from "../../resolvers/request-scope.ts";
import { BATCHING } from "../../schema/field-costs.ts";
import type { Redis } from "../../store/redis.ts";
import { createMemoryWindow, createRedisWindow, type Reservation } from "./sliding-window.ts";

/** The contract's limit is per minute. */
const WINDOW_SECONDS = 60;

export interface RateLimitConfig {
  /** The most requests in a window. */
  readonly rateLimitMax: number;
  /** The most requests that one request may count as. Default: `rateLimitMax`. */
  readonly maxCost?: number | undefined;
  /** Default: the contract's minute. */
  readonly rateLimitWindowSeconds?: number | undefined;
}

/**
 * Whether a request is admitted, and the response's headers; `errorHeaders` adds `Retry-After` to a
 * refusal.
 */
export interface Decision extends RateLimitState {
  /** `RateLimit-Policy` and `RateLimit`. Syntax: draft-ietf-httpapi-ratelimit-headers-11. */
  readonly headers: Readonly<Record<string, string>>;
  /** RATE_LIMITED; absent if the request is admitted. */
  readonly refusal?: ContractError | undefined;
}

/**
 * Takes `cost` requests from a caller's limit. A refusal takes one, if one is left: a caller who
 * asks for too much again and again is refused for that.
 */
export type RateLimit = (caller: string, cost: number) => Promise<Decision>;

const POLICY = '"address"';

/** What graphql-rate-limit knows of a request: REST and GraphQL share one field. */
const REQUEST = {
  parent: undefined,
  args: {},
  context: undefined,
  info: { fieldName: "request" } as GraphQLResolveInfo,
};

const refusal = (what: string, retryAfterSeconds: number) =>
  new ContractError("RATE_LIMITED", {
    ...retryIn(retryAfterSeconds, what, BATCHING),
    extensions: { scope: "CALLER" satisfies BudgetScope },
  });

/**
 * Limits REST and GraphQL together: at most `rateLimitMax` requests of a caller in any window, over
 * all replicas while Redis is available, per replica otherwise.
 *
 * graphql-rate-limit decides, from the times that its store returns. It asks its store and then
 * writes to it, so concurrent requests would all pass. Our store reserves a request's cost in one
 * atomic step. It then returns one time, or none if it has reserved the cost, and the library admits
 * a request if there are fewer times than one. So a decision costs the same after any number of
 * earlier requests.
 */
export function createRateLimit(
  {
    rateLimitMax: max,
    maxCost = max,
    rateLimitWindowSeconds: windowSeconds = WINDOW_SECONDS,
  }: RateLimitConfig,
  redis?: Redis,
): RateLimit {
  const windowMs = windowSeconds * 1000;
  const reserveInMemory = createMemoryWindow({ max, windowMs });
  const reserveInRedis = redis && createRedisWindow(redis, { max, windowMs });
  const policyHeader = `${POLICY};q=${max};w=${windowSeconds}`;

  return async (caller, cost) => {
    // What is above the window is always refused.
    const wanted = cost > maxCost ? max + 1 : cost;
    let reservation: Reservation | undefined;
    const store = {
      async getForIdentity() {
        reservation = (await reserveInRedis?.(caller, wanted)) ?? reserveInMemory(caller, wanted);
        // A refusal returns a time in every window.
        return reservation.isGranted ? [] : [Infinity];
      },
      setForIdentity: () => undefined,
    };
    const decide = getGraphQLRateLimiter({
      identifyContext: () => caller,
      // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- no class
      store,
    });
    const message = await decide(REQUEST, { max: 1 });
    const { requests, waitMs } = reservation!;
    const seconds = toRetryAfterSeconds(waitMs);
    // The limit may have been lowered: there are then more requests than it admits.
    const remaining = Math.max(0, max - requests);
    const what = `Too many requests: the maximum is ${max} in ${windowSeconds} seconds from one address.`;
    return {
      limit: max,
      maxCost,
      cost,
      remaining,
      resetSeconds: seconds,
      headers: {
        "ratelimit-policy": policyHeader,
        ratelimit: `${POLICY};r=${remaining};t=${seconds}`,
      },
      refusal: message === undefined ? undefined : refusal(what, seconds),
    };
  };
}

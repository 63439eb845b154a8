import { getGraphQLRateLimiter } from "graphql-rate-limit";
import { ContractError, retryIn, toRetryAfterSeconds } from "../../contract/contract-error.ts";
import type { RateLimitState } from "../../resolvers/request-scope.ts";
import { BATCHING } from "../../schema/field-costs.ts";
import type { Redis } from "../../store/redis.ts";
import { createMemoryWindow, createRedisWindow } from "./sliding-window.ts";

export interface RateLimitConfig {
  readonly max: number;
  readonly windowSeconds: number;
}

/**
 * Whether a request is admitted, and the response's headers; `errorHeaders` adds `Retry-After` to a
 * refusal.
 */
export interface Decision extends RateLimitState {
  /** The header `RateLimit-Policy`. Syntax: draft-ietf-httpapi-ratelimit-headers-11. */
  readonly policyHeader: string;
  /** The header `RateLimit`. */
  readonly rateLimitHeader: string;
  /** RATE_LIMITED; absent if the request is admitted. */
  readonly refusal?: ContractError | undefined;
}

/**
 * Takes `cost - earlierCost` requests from a caller's limit; an earlier call took `earlierCost`. A
 * refusal takes nothing.
 */
export type RateLimit = (caller: string, cost: number, earlierCost?: number) => Promise<Decision>;

/** How many of the library's decisions are cached. */
const MAX_DECISIONS = 10_000;

const POLICY = '"address"';

export function rateLimited(
  { max, windowSeconds }: RateLimitConfig,
  retryAfterSeconds: number,
): ContractError {
  const what = `Too many requests: the maximum is ${max} in ${windowSeconds} seconds from one address.`;
  return new ContractError("RATE_LIMITED", retryIn(retryAfterSeconds, what, BATCHING));
}

/**
 * Limits REST and GraphQL together: at most `max` requests of a caller in any span of
 * `windowSeconds`, over all replicas while Redis is available, per replica otherwise.
 * graphql-rate-limit decides, by the earlier requests in the window. Our store counts them and
 * records new ones in one atomic step, by the same rule, because the library's would let concurrent
 * requests pass. The decision depends on two numbers, so it is cached.
 */
export function createRateLimit(config: RateLimitConfig, redis?: Redis): RateLimit {
  const { max, windowSeconds } = config;
  const windowMs = windowSeconds * 1000;
  const takeInMemory = createMemoryWindow({ max, windowMs });
  const takeInRedis = redis && createRedisWindow(redis, { max, windowMs });
  const policyHeader = `${POLICY};q=${max};w=${windowSeconds}`;
  /**
   * Whether the library refuses, by the number of earlier requests in the window and the number of
   * new ones.
   */
  const refusals = new Map<string, boolean>();

  async function isTooMuch(earlierRequests: number, count: number): Promise<boolean> {
    const known = refusals.get(`${earlierRequests},${count}`);
    if (known !== undefined) return known;
    const store = {
      getForIdentity: () => Array<number>(earlierRequests).fill(Date.now()),
      setForIdentity: () => undefined,
    };
    const decide = getGraphQLRateLimiter({
      identifyContext: () => "caller",
      // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- no class
      store,
      formatError: () => "refused",
    });
    const message = await decide(
      {
        parent: undefined,
        args: { calls: { length: count } },
        context: undefined,
        info: { fieldName: "request" } as Parameters<typeof decide>[0]["info"],
      },
      { max, window: `${windowSeconds}s`, arrayLengthField: "calls", uncountRejected: true },
    );
    if (refusals.size === MAX_DECISIONS) refusals.clear();
    refusals.set(`${earlierRequests},${count}`, message !== undefined);
    return message !== undefined;
  }

  return async (caller, cost, earlierCost = 0) => {
    const take = { cost, earlierCost };
    const { earlierRequests, waitMs } =
      (await takeInRedis?.(caller, take)) ?? takeInMemory(caller, take);
    const count = cost - earlierCost;
    const isRefused = await isTooMuch(earlierRequests, count);
    const seconds = toRetryAfterSeconds(Math.min(waitMs, windowMs));
    const remaining = max - earlierRequests - (isRefused ? 0 : count);
    return {
      limit: max,
      cost,
      remaining,
      resetSeconds: seconds,
      policyHeader,
      rateLimitHeader: `${POLICY};r=${remaining};t=${seconds}`,
      refusal: isRefused ? rateLimited(config, seconds) : undefined,
    };
  };
}

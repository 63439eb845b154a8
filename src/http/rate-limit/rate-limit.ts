import { getGraphQLRateLimiter } from "graphql-rate-limit";
import { ContractError, toRetryAfterSeconds } from "../../contract/errors.ts";
import type { Redis } from "../../upstream/redis.ts";
import { createTakeInMemory } from "./memory-store.ts";
import { createTakeInRedis } from "./redis-store.ts";

/** At most `max` requests of one caller in any span of `windowMs`. */
export interface Limit {
  readonly max: number;
  readonly windowMs: number;
}

/** The same as the operator sets it. */
export interface RateLimitConfig {
  readonly max: number;
  readonly windowSeconds: number;
}

/** What a caller's request came upon. It was put down if it fits: if `counted` and its cost are `max` at most. */
export interface Taken {
  /** The caller's earlier requests that are still in the window. */
  readonly counted: number;
  /** The time that the request was put down with. */
  readonly at: number;
  /**
   * Until this request would fit, or, when it does, until the oldest one leaves the window; for a cost that
   * never fits until all have left.
   */
  readonly waitMs: number;
}

/** What became of a request. */
export interface Verdict {
  /** For `instead`, when it turns out that the request costs more. */
  readonly at: number;
  /** The header `RateLimit-Policy`, and below it `RateLimit`. Syntax: draft-ietf-httpapi-ratelimit-headers-11. */
  readonly policy: string;
  readonly standing: string;
  /** RATE_LIMITED; absent for a request that may pass. */
  readonly refusal?: ContractError;
}

export type RateLimit = ReturnType<typeof createRateLimit>;

const POLICY = '"address"';

/** The header `RateLimit-Policy`. */
export function toPolicy({ max, windowSeconds }: RateLimitConfig): string {
  return `${POLICY};q=${max};w=${windowSeconds}`;
}

/** The header `RateLimit`. */
export function toStanding(left: number | string, seconds: number | string): string {
  return `${POLICY};r=${left};t=${seconds}`;
}

/** RATE_LIMITED, for a request that costs `cost`. */
export function rateLimited(
  { max, windowSeconds }: RateLimitConfig,
  cost: number,
  retryAfterSeconds: number,
): ContractError {
  const rule = `At most ${max} requests in ${windowSeconds} seconds are allowed from one address`;
  return new ContractError("RATE_LIMITED", {
    message:
      cost > max
        ? `${rule}, and this one counts as ${cost}. Split it.`
        : `${rule}. Try again in ${retryAfterSeconds} seconds.`,
    retryAfterSeconds,
  });
}

/**
 * The budget that REST and GraphQL share: in no span of `windowSeconds` do more than `max` requests of
 * one caller pass, on all replicas together while Redis can be had, else on each.
 *
 * graphql-rate-limit decides. By itself it would read the earlier requests, decide, and write, and between
 * the two others could read the same; so it is given a reading that has put the request down by the same
 * rule, in one atomic step.
 */
export function createRateLimit(
  config: RateLimitConfig,
  redis?: Redis,
): (caller: string, cost: number, instead?: number) => Promise<Verdict> {
  const { max, windowSeconds } = config;
  const limit: Limit = { max, windowMs: windowSeconds * 1000 };
  const takeInMemory = createTakeInMemory(limit);
  const takeInRedis = redis && createTakeInRedis(redis, limit);
  const decide = getGraphQLRateLimiter({
    identifyContext: ({ counted }: Taken) => String(counted),
    // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- the class has no code of its own
    store: {
      // One present timestamp for each request that counts, however late the library looks at them.
      getForIdentity: ({ contextIdentity }) => new Array<number>(Number(contextIdentity)).fill(Date.now()),
      setForIdentity: () => undefined,
    },
    formatError: () => "refused",
  });
  const policy = toPolicy(config);

  /**
   * Takes `cost` requests out of a caller's budget, in place of the one that was put down at `instead`; a
   * request that is refused takes nothing.
   */
  return async (caller, cost, instead) => {
    const taken = (await takeInRedis?.(caller, cost, instead)) ?? takeInMemory(caller, cost, instead);
    const refused = await decide(
      {
        parent: undefined,
        args: { calls: { length: cost } },
        context: taken,
        info: { fieldName: "request" } as Parameters<typeof decide>[0]["info"],
      },
      { max, window: `${windowSeconds}s`, arrayLengthField: "calls", uncountRejected: true },
    );
    const { counted, at, waitMs } = taken;
    const seconds = toRetryAfterSeconds(waitMs);
    const left = refused === undefined ? max - counted - cost : max - counted;
    const verdict = { at, policy, standing: toStanding(left, seconds) };
    return refused === undefined ? verdict : { ...verdict, refusal: rateLimited(config, cost, seconds) };
  };
}

import { getGraphQLRateLimiter } from "graphql-rate-limit";
import { ContractError, toRetryAfterSeconds } from "../../contract/contract-error.ts";
import type { RateLimitDescription } from "../../rest/openapi.ts";
import type { RateLimitState } from "../../resolvers/request-scope.ts";
import type { Redis } from "../../upstream/redis.ts";
import { createMemoryWindow, createRedisWindow, type Limit, type WindowState } from "./sliding-window.ts";

/** The limit that the operator configures. */
export interface RateLimitConfig {
  readonly max: number;
  readonly windowSeconds: number;
}

/**
 * Whether a request is admitted, and the response's headers. A 429 also carries `Retry-After`, which
 * `errorHeaders` takes from the refusal.
 */
export interface Decision extends RateLimitState {
  /** Passed as `replaces` when the request turns out to cost more. */
  readonly at: number;
  /** The header `RateLimit-Policy`. Syntax: draft-ietf-httpapi-ratelimit-headers-11. */
  readonly policyHeader: string;
  /** The header `RateLimit`. */
  readonly rateLimitHeader: string;
  /** RATE_LIMITED; absent if the request is admitted. */
  readonly refusal?: ContractError | undefined;
}

/**
 * Takes `cost` requests from a caller's limit. They replace the request recorded at `replaces`. A refused
 * request takes nothing, and replaces nothing.
 */
export type RateLimit = (caller: string, cost: number, replaces?: number) => Decision | Promise<Decision>;

/** How many of the library's decisions are cached. */
const MAX_DECISIONS = 10_000;

const POLICY = '"address"';
const DIGITS = "[0-9]+";

function toPolicyHeader({ max, windowSeconds }: RateLimitConfig): string {
  return `${POLICY};q=${max};w=${windowSeconds}`;
}

function toRateLimitHeader(left: number | string, seconds: number | string): string {
  return `${POLICY};r=${left};t=${seconds}`;
}

function rateLimited({ max, windowSeconds }: RateLimitConfig, retryAfterSeconds: number): ContractError {
  return new ContractError("RATE_LIMITED", {
    message: `Too many requests: the maximum is ${max} in ${windowSeconds} seconds from one address. Try again in ${retryAfterSeconds} seconds.`,
    retryAfterSeconds,
  });
}

/** Describes the limit, its headers and its refusal for the OpenAPI document. */
export function describeRateLimit(config: RateLimitConfig): RateLimitDescription {
  const { max, windowSeconds } = config;
  const policy = toPolicyHeader(config);
  return {
    max,
    windowSeconds,
    headers: {
      RateLimit: {
        description: "What is left of the caller's limit: `r` requests now, more in `t` seconds.",
        schema: { type: "string", pattern: `^${toRateLimitHeader(DIGITS, DIGITS)}$` },
        example: toRateLimitHeader(max - 1, windowSeconds),
      },
      "RateLimit-Policy": {
        description: "The limit: `q` requests from one address in any `w` seconds.",
        schema: { type: "string", const: policy },
        example: policy,
      },
    },
    refusal: rateLimited(config, windowSeconds),
  };
}

/**
 * REST and GraphQL share one limit: at most `max` requests of a caller in any span of `windowSeconds`, over all
 * replicas while Redis is available, per replica otherwise.
 *
 * graphql-rate-limit makes the decision: it adds the request's cost to the number of timestamps in the window
 * and compares the sum with `max`. On its own it reads, decides and writes in three steps, so concurrent
 * requests could read the same state. Our windows therefore count and record in one atomic step, by the same rule,
 * before the library decides. The library reads the number that they counted, and its write is a no-op. So its
 * decision depends only on that number and the cost, and is cached.
 */
export function createRateLimit(config: RateLimitConfig, redis?: Redis): RateLimit {
  const { max, windowSeconds } = config;
  const limit: Limit = { max, windowMs: windowSeconds * 1000 };
  const takeInMemory = createMemoryWindow(limit);
  const takeInRedis = redis && createRedisWindow(redis, limit);
  const decide = getGraphQLRateLimiter({
    identifyContext: ({ counted }: WindowState) => String(counted),
    // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- the class has no code of its own
    store: {
      // One current timestamp per counted request: none can leave the window before the library checks it.
      getForIdentity: ({ contextIdentity }) => new Array<number>(Number(contextIdentity)).fill(Date.now()),
      setForIdentity: () => undefined,
    },
    formatError: () => "refused",
  });
  const policyHeader = toPolicyHeader(config);
  /** Whether the library refuses a request, by `counted` and cost. */
  const refusals = new Map<string, boolean>();

  async function isRefused(state: WindowState, cost: number): Promise<boolean> {
    const message = await decide(
      {
        parent: undefined,
        args: { calls: { length: cost } },
        context: state,
        info: { fieldName: "request" } as Parameters<typeof decide>[0]["info"],
      },
      { max, window: `${windowSeconds}s`, arrayLengthField: "calls", uncountRejected: true },
    );
    if (refusals.size === MAX_DECISIONS) refusals.clear();
    refusals.set(`${state.counted},${cost}`, message !== undefined);
    return message !== undefined;
  }

  function toDecision({ counted, at, waitMs }: WindowState, cost: number, refused: boolean): Decision {
    const seconds = toRetryAfterSeconds(waitMs);
    const remaining = refused ? max - counted : max - counted - cost;
    const rateLimitHeader = toRateLimitHeader(remaining, seconds);
    const refusal = refused ? rateLimited(config, seconds) : undefined;
    return { at, limit: max, cost, remaining, resetSeconds: seconds, policyHeader, rateLimitHeader, refusal };
  }

  function decideAbout(state: WindowState, cost: number): Decision | Promise<Decision> {
    const refused = refusals.get(`${state.counted},${cost}`);
    return refused === undefined
      ? isRefused(state, cost).then((isNow) => toDecision(state, cost, isNow))
      : toDecision(state, cost, refused);
  }

  return (caller, cost, replaces) =>
    takeInRedis
      ? takeInRedis(caller, cost, replaces).then((state) =>
          decideAbout(state ?? takeInMemory(caller, cost, replaces), cost),
        )
      : decideAbout(takeInMemory(caller, cost, replaces), cost);
}

import { getGraphQLRateLimiter } from "graphql-rate-limit";
import { ContractError, toRetryAfterSeconds } from "../errors.ts";
import { createMemoryStore } from "./rate-limit-store.ts";

export type RateLimit = ReturnType<typeof createRateLimit>;

/**
 * The budget that REST and GraphQL share: in no span of `windowSeconds` do more than `max` requests of
 * one caller pass. graphql-rate-limit decides; its store makes the decision exact.
 */
export function createRateLimit({ max, windowSeconds }: { max: number; windowSeconds: number }) {
  const store = createMemoryStore({ max, windowMs: windowSeconds * 1000 });
  const decide = getGraphQLRateLimiter({
    identifyContext: (caller: string) => caller,
    // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- the class has no code of its own
    store,
    formatError: () => "refused",
  });

  function refusal(caller: string, cost: number): ContractError {
    const retryAfterSeconds = toRetryAfterSeconds(store.millisecondsUntilFree(caller, cost));
    const limit = `At most ${max} requests in ${windowSeconds} seconds are allowed from one address`;
    return new ContractError("RATE_LIMITED", {
      message:
        cost > max
          ? `${limit}, and this one counts as ${cost}. Split it.`
          : `${limit}. Try again in ${retryAfterSeconds} seconds.`,
      retryAfterSeconds,
    });
  }

  return {
    /**
     * Takes `cost` requests out of a caller's budget.
     *
     * @throws {ContractError} RATE_LIMITED when less is left; then nothing is taken.
     */
    async admit(caller: string, cost: number): Promise<void> {
      // One name for all fields makes one budget; `cost` reaches the store as a part of the field's identity.
      const request = { parent: undefined, context: caller, args: { cost, calls: { length: cost } } };
      const info = { fieldName: "request" } as Parameters<typeof decide>[0]["info"];
      const refused = await decide(
        { ...request, info },
        {
          max,
          window: `${windowSeconds}s`,
          identityArgs: ["cost"],
          arrayLengthField: "calls",
          uncountRejected: true,
        },
      );
      if (refused !== undefined) throw refusal(caller, cost);
    },

    /**
     * Looks whether a caller has a request left, and takes none.
     *
     * @throws {ContractError} RATE_LIMITED
     */
    assertAdmissible(caller: string): void {
      if (store.millisecondsUntilFree(caller, 1) > 0) throw refusal(caller, 1);
    },
  };
}

import { expect } from "vitest";
import { readConfig } from "../../src/config.ts";
import type { ContractOperation, ERROR_CODES, ErrorCode } from "../../src/contract/error-codes.ts";
import type { Answer } from "./client.ts";
import type { Env } from "./configure.ts";
import { startWorld, type World } from "./world.ts";

/**
 * Starts the world of the scenarios: each caller may make one request an hour, and no lookup may
 * queue.
 */
export const startScenarioWorld = (env: Env = {}): Promise<World> =>
  startWorld({
    RATE_LIMIT_MAX: "1",
    RATE_LIMIT_WINDOW_SECONDS: 3_600,
    SOCIAL_CONCURRENCY: 1,
    SOCIAL_QUEUE_MAX: "0",
    CORS_ORIGINS: "https://app.example",
    ...env,
  });

/** An HTTP request to a new world that fails with one error code. */
type Scenario = (world: World) => Promise<Answer>;

type CodeOf<Operation extends ContractOperation> = {
  [Code in ErrorCode]: (typeof ERROR_CODES)[Code] extends { operations: readonly (infer Each)[] }
    ? Operation extends Each
      ? Code
      : never
    : never;
}[ErrorCode];
type OtherCode = Exclude<ErrorCode, CodeOf<ContractOperation>>;

const unavailable = { status: 503, body: "" };
const collectCreator: Scenario = (world) => world.collect(world.account("creator").id);

/** The second request of a caller whose limit is one. */
async function secondRequest(
  ask: (headers: Record<string, string>) => Promise<Answer>,
): Promise<Answer> {
  const caller = { "x-forwarded-for": "192.0.2.1" };
  await ask(caller);
  return ask(caller);
}

/** A scenario for each code of each operation. A new code does not compile without one. */
export const SCENARIOS: {
  readonly lookup: Readonly<Record<CodeOf<"lookup">, Scenario>>;
  readonly wallets: Readonly<Record<CodeOf<"wallets">, Scenario>>;
  readonly collect: Readonly<Record<CodeOf<"collect">, Scenario>>;
  readonly other: Readonly<Record<OtherCode, Scenario>>;
} = {
  lookup: {
    HANDLE_REQUIRED: (world) => world.request("/wallet/lookup"),
    INVALID_HANDLE: (world) => world.lookup("@creator"),
    INVALID_MINT: (world) => world.request("/wallet/lookup?handle=creator&mint=nonsense"),
    SOCIAL_NOT_FOUND: (world) => world.lookup("nobodyatall"),
    SOCIAL_RATE_LIMITED: (world) => {
      world.sandbox.social.faults.add({ then: { status: 429, body: "{}" } });
      return world.lookup("creator");
    },
    SOCIAL_API_UNAVAILABLE: (world) => {
      world.sandbox.social.faults.add({ then: unavailable });
      return world.lookup("creator");
    },
    SERVICE_BUSY: async (world) => {
      const { social } = world.sandbox;
      social.faults.add({ then: "hang" });
      const leaving = new AbortController();
      const first = world.request("/wallet/lookup?handle=artist001", { signal: leaving.signal });
      await expect.poll(() => social.calls.length).toBe(1);
      const answer = await world.lookup("creator");
      leaving.abort();
      await first.catch(() => undefined);
      return answer;
    },
    LOOKUP_FAILED: (world) => {
      world.sandbox.rpc.faults.add({ then: unavailable });
      return world.lookup("creator");
    },
    RATE_LIMITED: (world) => secondRequest((headers) => world.lookup("!", headers)),
  },
  wallets: {
    BAD_REQUEST: (world) => world.request("/wallets"),
    INVALID_MINT: (world) => world.request("/wallets?handle=creator&mint=x"),
    RATE_LIMITED: (world) => secondRequest((headers) => world.request("/wallets", { headers })),
  },
  collect: {
    INVALID_SOCIAL_ID: (world) => world.collect("creator"),
    INVALID_MINT: (world) => world.collect(world.account("creator").id, {}, ["nonsense"]),
    INVALID_MINIMUM: (world) =>
      world.post("/collect", { socialId: world.account("creator").id, minimum: "0,5" }),
    NOTHING_TO_COLLECT: (world) => world.collect(world.account("newcomer").id),
    INSUFFICIENT_FUNDS: (world) => {
      const { feePayerKeypair: feePayer } = readConfig(world.sandbox.env).secrets;
      world.sandbox.chain.setBalance(feePayer.publicKey.toBase58(), 0n);
      return collectCreator(world);
    },
    COLLECT_FAILED: (world) => {
      world.sandbox.rpc.faults.add({ then: unavailable });
      return collectCreator(world);
    },
    RATE_LIMITED: (world) => secondRequest((headers) => world.collect("!", headers)),
  },
  other: {
    NOT_FOUND: (world) => world.request("/nowhere"),
    METHOD_NOT_ALLOWED: (world) => world.request("/collect"),
    ORIGIN_NOT_ALLOWED: (world) => world.lookup("creator", { origin: "https://other.example" }),
  },
};

import { Registry } from "@prometheus-io/client";
import { CollectError, type CollectFailure } from "../../src/chain/errors/collect-error.ts";
import type { CollectCaller } from "../../src/chain/collect/turns.ts";
import type { CollectOutcome } from "../../src/chain/collect/collector.ts";
import { createLogger } from "../../src/observability/log.ts";
import { createWarnings } from "../../src/observability/warnings.ts";
import { createReplicaCount } from "../../src/store/replica-count.ts";
import { createChainServices, type Overrides } from "../../src/services.ts";
import type { WalletWithCoins } from "../../src/chain/balances/wallets.ts";
import { createBudgetMetrics } from "../../src/fairness/budget-metrics.ts";
import { createCallUpstream } from "../../src/upstream/http.ts";
import type { Redis } from "../../src/store/redis.ts";
import { configure, type Env } from "./configure.ts";
import { SHORT_WAITS, type TestSandbox } from "./sandbox.ts";
import { addMs, monotonicNow, type MonotonicTime } from "../../src/time/monotonic.ts";

/** Longer than any test: only collects with a passed deadline time out, and no call does. */
const TIMEOUT_MS = 600_000;
/** Long enough for a busy machine to start or join a collect. */
const BRIEFLY_MS = 200;
const CALLER = "caller";
export type ChainRpc = TestSandbox["rpc"];
export type SandboxCollector = ReturnType<typeof createSandboxCollector>;

/**
 * The gateway's collector with the sandbox's chain. `env` overrides variables of the default
 * configuration.
 */
export function createSandboxCollector(
  sandbox: TestSandbox,
  options: {
    rpcs?: readonly ChainRpc[];
    redis?: Redis;
    env?: Env;
    /** Replace {@link SHORT_WAITS}. */
    waits?: Overrides;
    withCoins?: boolean;
  } = {},
) {
  const { rpcs = [sandbox.rpc], redis, env, waits } = options;
  const { config, constants } = configure({
    ...sandbox.env,
    SOLANA_RPC_URL: rpcs.map(({ url }) => url).join(),
    COLLECT_TIMEOUT_MS: String(TIMEOUT_MS),
    RPC_TIMEOUT_MS: String(TIMEOUT_MS),
    RPC_CALLS_PER_SECOND: "1000000",
    ...env,
  });
  const registry = new Registry();
  const logLines: string[] = [];
  const log = createLogger("trace", { write: (line) => void logLines.push(line) });
  const chain = createChainServices({
    config,
    registry,
    redis,
    replicas: createReplicaCount(redis),
    callUpstream: createCallUpstream(registry),
    budgetMetrics: createBudgetMetrics(registry),
    warnings: createWarnings(log),
    log,
    overrides: { ...SHORT_WAITS, ...constants, ...waits },
  });
  const collector = {
    /** A caller who is not behind a trusted one may be given as its block. */
    async collect(
      wallet: WalletWithCoins,
      caller: string | CollectCaller,
      startedAt: MonotonicTime,
    ) {
      const outcome = await chain.collector.collect(
        wallet,
        typeof caller === "string" ? { addressBlock: caller, visitorBlock: caller } : caller,
        startedAt,
      );
      if (outcome.kind === "failed") throw outcome.error;
      const others = (outcome.left ?? []).filter(({ reason }) => reason === "NO_ROOM");
      const remaining =
        outcome.kind === "collected"
          ? others.map(({ mint, amount }) => ({ mint, amount }))
          : undefined;
      // Tests of answers compare these.
      const lastCollect = outcome.kind === "nothing" ? outcome.lastCollects[0] : undefined;
      return { ...outcome, remaining, lastCollect, left: undefined, lastCollects: undefined };
    },
  };
  /** With `withCoins`, collects name the account's coins. */
  const wallet = (handle: string) => {
    const account = sandbox.account(handle);
    return { account, coins: options.withCoins ? account.coins : [] };
  };

  return {
    collector,
    settled: chain.flights.settled,
    openSignatures: chain.flights.openSignatures,
    balances: chain.balances,
    feePayer: config.secrets.feePayerKeypair.publicKey.toBase58(),
    logLines,
    /** Collects with the full deadline. Returns the outcome, or the failure of a CollectError. */
    collect: (handle: string, caller = CALLER) =>
      failureOf(collector.collect(wallet(handle), caller, monotonicNow())),
    /** Collects shortly before the deadline. */
    collectBriefly: (handle: string) =>
      failureOf(
        collector.collect(wallet(handle), CALLER, addMs(monotonicNow(), BRIEFLY_MS - TIMEOUT_MS)),
      ),
    /** Collects after the deadline. */
    collectTooLate: (handle: string) =>
      failureOf(collector.collect(wallet(handle), CALLER, addMs(monotonicNow(), -TIMEOUT_MS))),
  };
}

async function failureOf(
  outcome: Promise<CollectOutcome>,
): Promise<CollectOutcome | CollectFailure> {
  try {
    return await outcome;
  } catch (error) {
    if (error instanceof CollectError) return error.failure;
    throw error;
  }
}

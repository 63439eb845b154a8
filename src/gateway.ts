import { Counter, Registry } from "@prometheus-io/client";
import { nameOfCluster } from "./checks/check-chain.ts";
import { createDeployWatch } from "./checks/deploys.ts";
import { checkUpstreams } from "./checks/preflight.ts";
import type { Config } from "./config.ts";
import { handleFormat } from "./contract/handle.ts";
import { createBudgetMetrics } from "./fairness/budget-metrics.ts";
import { createHealth } from "./http/health.ts";
import { createHttpApi, type SandboxRoutes } from "./http/http-api.ts";
import { createStreams } from "./http/streams.ts";
import { createLogger, droppedLines, type Logger } from "./observability/log.ts";
import { createWarnings } from "./observability/warnings.ts";
import { createUseCases } from "./resolvers/use-cases.ts";
import { createChainServices, createSocialServices, type Overrides } from "./services.ts";
import { describeReplica } from "./status.ts";
import { createRedis } from "./store/redis.ts";
import { createCallUpstream } from "./upstream/http.ts";

/** How long shutdown waits for Redis to receive the outcomes of all collects. */
const WRITE_OUTCOMES_MS = 5_000;

/** Creates the gateway, which `main.ts` serves. Only tests pass `overrides`. */
export function createGateway(
  config: Config,
  options: { log?: Logger; sandbox?: SandboxRoutes | undefined; overrides?: Overrides } = {},
) {
  const { log = createLogger(config.logLevel), sandbox, overrides = {} } = options;
  const registry = new Registry();
  new Counter({
    name: "tributary_log_lines_dropped_total",
    help: "Log lines that were dropped, because standard output was full.",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(droppedLines());
    },
  });
  const warnings = createWarnings(log);
  const callUpstream = createCallUpstream(registry);
  const budgetMetrics = createBudgetMetrics(registry);
  const { redisUrl: urls } = config.secrets;
  const answerTimeoutMs = overrides.redisAnswerTimeoutMs;
  const redis = urls && createRedis({ urls, log, warnings, registry, answerTimeoutMs });

  const shared = { config, registry, redis, callUpstream, budgetMetrics, warnings, log, overrides };
  const social = createSocialServices(shared);
  const chain = createChainServices(shared);
  const deploys = createDeployWatch({ rpc: chain.rpc, redis, registry, log });
  const format = handleFormat(config.handleAllowUnderscore ?? false);
  const useCases = createUseCases({
    handleFormat: format,
    addressesOf: chain.addressesOf,
    collector: chain.collector,
    history: chain.history,
    live: chain.live,
  });
  const health = createHealth({
    rpc: chain.rpc,
    socialClient: social.client,
    hasRedis: redis !== undefined,
    warnings,
    registry,
  });
  const settings = { ...config, ...overrides };
  const streams = createStreams(settings, registry);
  const { api, admin } = createHttpApi({
    settings,
    handleFormat: format,
    useCases,
    loaderSources: { accountLookup: social.accountLookup, balances: chain.balances },
    cluster: () => nameOfCluster(chain.rpc.genesisHash()),
    streams,
    health,
    describeReplica: () =>
      describeReplica({ chain, social, budgetMetrics, redis, streams, health }),
    sandbox,
    redis,
    registry,
    warnings,
    log,
  });

  return {
    /** Resolves when Redis first answers, or after a second. Without Redis, it resolves at once. */
    ready: redis?.ready ?? Promise.resolve(),
    /** The gateway's metrics. `main.ts` adds those of the process. */
    registry,
    /**
     * Checks the upstreams and logs the results; `/readyz` returns 503 until then. Throws
     * PreflightError.
     */
    async start(): Promise<void> {
      await health.waitForStart(
        checkUpstreams({
          config,
          rpc: chain.rpc,
          client: social.client,
          redis,
          log,
          setFeePayerBalance(lamports) {
            health.chainRead();
            chain.metrics.setBalance(lamports);
          },
        }),
      );
      deploys.start();
    },
    /** Answers the requests to PORT. */
    api,
    /** Answers the requests to ADMIN_PORT. */
    admin,

    /**
     * Makes `/readyz` return 503 from now on, and ends all streams, whose callers then connect
     * elsewhere.
     */
    drain() {
      health.drain();
      streams.close();
    },
    /** Resolves when no transaction is in flight. */
    settled: chain.flights.settled,
    /** The signatures of the transactions in flight. */
    openSignatures: chain.flights.openSignatures,
    /** Resolves when Redis has the outcomes of all collects, or after five seconds. */
    outcomesWritten: async () => redis?.flush(WRITE_OUTCOMES_MS),
    /** The number of collects whose outcome Redis does not have yet. */
    unwrittenOutcomes: () => redis?.unwritten() ?? 0,
    close(): void {
      deploys.stop();
      chain.replicas.stop();
      redis?.close();
    },
  };
}

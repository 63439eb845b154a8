import { Counter } from "@prometheus-io/client";
import { checkChain, nameOfCluster } from "./checks/check-chain.ts";
import { checkSocialNetwork } from "./checks/check-social-network.ts";
import { createDeployWatch } from "./checks/deploys.ts";
import type { Finding } from "./checks/finding.ts";
import { ConfigError, type Config } from "./config.ts";
import { handleFormat } from "./contract/handle.ts";
import { createHealth } from "./http/health.ts";
import { createHttpApi, type SandboxRoutes } from "./http/http-api.ts";
import { createStreams } from "./http/streams.ts";
import { createLogger, droppedLines, type Logger } from "./observability/log.ts";
import { COMMIT, VERSION } from "./observability/version.ts";
import { createUseCases } from "./resolvers/use-cases.ts";
import { createServices, type Overrides } from "./services.ts";

/** How long shutdown waits for Redis to receive the outcomes of all collects. */
const WRITE_OUTCOMES_MS = 5_000;

/** Of each list of `/status` that strangers can make long. */
const MOST_LISTED = 100;

/** Creates the gateway, which `main.ts` serves. Only tests pass `overrides`. */
export function createGateway(
  config: Config,
  options: { log?: Logger; sandbox?: SandboxRoutes | undefined; overrides?: Overrides } = {},
) {
  const { log = createLogger(config.logLevel), sandbox, overrides = {} } = options;
  const services = createServices(config, log, overrides);
  const { registry, redis, replicas, budgetMetrics, social, chain } = services;
  new Counter({
    name: "tributary_log_lines_dropped_total",
    help: "Log lines that were dropped, because standard output was full.",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(droppedLines());
    },
  });
  const shared = { ...services, rpc: chain.rpc };
  const deploys = createDeployWatch(shared);
  const format = handleFormat(config.handleAllowUnderscore ?? false);
  const hasRedis = redis !== undefined;
  const health = createHealth({ ...shared, socialClient: social.client, hasRedis });
  const settings = { ...config, ...overrides };
  const streams = createStreams(settings, registry);
  const { api, admin } = createHttpApi({
    ...shared,
    settings,
    streams,
    health,
    sandbox,
    handleFormat: format,
    useCases: createUseCases({ ...chain, handleFormat: format }),
    loaderSources: { accountLookup: social.accountLookup, balances: chain.balances },
    cluster: () => nameOfCluster(chain.rpc.genesisHash()),
    // Has hosts, accounts' addresses and signatures, but no secrets, and nothing of callers.
    describeReplica: async () => ({
      at: new Date().toISOString(),
      version: VERSION,
      commit: COMMIT,
      upSeconds: Math.floor(process.uptime()),
      readyz: health.describe(),
      feePayer: chain.metrics.describe(),
      endpoints: chain.rpc.describe(),
      network: social.describe(),
      collects: {
        ...chain.flights.describe(MOST_LISTED),
        ...chain.failures.describe(MOST_LISTED),
      },
      budgets: { left: await budgetMetrics.describe(), chainCalls: chain.chainCallPlan.describe() },
      replicas: { count: replicas.count(), redis: redis && (redis.isUp() ? "up" : "down") },
      caches: {
        accounts: social.accountLookup.describeCache(),
        histories: chain.history.describeCache(),
        floors: chain.floors.describeCache(),
        failures: chain.failures.describeCache(),
      },
      streams: streams.describe(),
    }),
  });

  return {
    /** Resolves when Redis first answers, or after a second. Undefined without Redis. */
    ready: redis?.ready,
    /** The gateway's metrics. `main.ts` adds those of the process. */
    registry,
    /**
     * Checks the upstreams without spending anything, and logs the results; `/readyz` returns 503
     * until then. Most problems are only logged, because they may go away while the process runs.
     * Throws ConfigError if a required program is missing on a public cluster.
     */
    async start(): Promise<void> {
      function report({ state, variable, text, isFatal, isReported }: Finding): void {
        const message = `${variable}: ${text}`;
        if (isFatal) throw new ConfigError([message]);
        if (!isReported) log[state === "good" ? "info" : "warn"](message);
      }
      await health.waitForStart(
        Promise.all([
          checkChain({
            ...shared,
            report,
            setFeePayerBalance(lamports) {
              health.chainRead();
              chain.metrics.setBalance(lamports);
            },
          }),
          checkSocialNetwork(social.client, config.socialApiUrl).then(report),
          redis?.ready,
        ]),
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
      replicas.stop();
      redis?.close();
    },
  };
}

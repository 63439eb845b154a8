import { Registry } from "@prometheus-io/client";
import { nameOfCluster } from "./checks/check-chain.ts";
import { checkUpstreams } from "./checks/preflight.ts";
import type { Config } from "./config.ts";
import { handleFormat } from "./contract/handle.ts";
import { answerError } from "./contract/http-messages.ts";
import { createGraphQLEndpoint } from "./graphql/graphql-endpoint.ts";
import { createIdentifyClient } from "./http/client-address.ts";
import { createCors, withoutHeaders } from "./http/cors.ts";
import { createHealth } from "./http/health.ts";
import { createMetricsHandler, createRequestMetrics } from "./http/metrics.ts";
import { wantsGraphiQL, type ExampleAccount } from "./http/pages/graphiql.ts";
import { createOpenApiFile } from "./http/pages/openapi-file.ts";
import { createPages } from "./http/pages/pages.ts";
import { createRateLimit, rateLimited } from "./http/rate-limit/rate-limit.ts";
import { createWriteRefusal } from "./http/refusals.ts";
import { createRouter, withRateLimit, type Handler, type Route } from "./http/router.ts";
import type { Responder } from "./http/server.ts";
import { createStreams } from "./http/streams.ts";
import { createLogger, type Logger } from "./observability/log.ts";
import { createWarnings } from "./observability/warnings.ts";
import { createUseCases } from "./resolvers/use-cases.ts";
import { COLLECT_FAILURE, createCollectHandler } from "./rest/collect.ts";
import { createLookupHandler } from "./rest/lookup.ts";
import { createOpenApiDocument, descriptionLink } from "./rest/openapi.ts";
import { createPrepareOperation } from "./rest/prepared-operation.ts";
import { schema } from "./schema/schema.ts";
import {
  createChainServices,
  createSocialServices,
  type CommonNeeds,
  type Waits,
} from "./services.ts";
import { createBudgetMetrics } from "./fairness/budget-metrics.ts";
import { createCallUpstream } from "./upstream/http.ts";
import { createRedis } from "./store/redis.ts";

const FORGOTTEN_PROXY =
  "X-Forwarded-For arrives from a private address that is not in TRUST_PROXY: if that is your proxy, all callers behind it share one rate limit until you add its address";

/** How long shutdown waits for Redis to receive the outcomes of all collects. */
const WRITE_OUTCOMES_MS = 5_000;

/**
 * Creates the gateway, which `main.ts` serves. Only tests pass `waits` and `redisAnswerTimeoutMs`.
 */
export function createGateway(
  config: Config,
  options: {
    log?: Logger;
    sandbox?:
      { readonly accounts: readonly ExampleAccount[]; readonly handleFees: Handler } | undefined;
    redisAnswerTimeoutMs?: number;
    waits?: Waits;
  } = {},
) {
  const { log = createLogger(config.logLevel), sandbox, redisAnswerTimeoutMs, waits } = options;
  const { redisUrl: redisUrls } = config.secrets;
  const rateLimit = { max: config.rateLimitMax, windowSeconds: config.rateLimitWindowSeconds };
  const registry = new Registry();
  const warnings = createWarnings(log);
  const redis =
    redisUrls &&
    createRedis({
      urls: redisUrls,
      log,
      warnings,
      registry,
      answerTimeoutMs: redisAnswerTimeoutMs,
    });
  const common: CommonNeeds = {
    config,
    registry,
    redis,
    callUpstream: createCallUpstream(registry),
    budgetMetrics: createBudgetMetrics(registry),
    warnings,
    log,
    waits,
  };
  const social = createSocialServices(common);
  const chain = createChainServices(common);

  const format = handleFormat(config.handleAllowUnderscore ?? false);
  const useCases = createUseCases({ ...chain, handleFormat: format });
  const prepare = createPrepareOperation(schema, useCases);
  const path = `${config.basePath}/graphql`;
  const graphql = createGraphQLEndpoint({ schema, path, useCases, log });
  const openApiDocument = createOpenApiDocument({
    basePath: config.basePath,
    isOpenToAllPages: config.corsOrigins === undefined,
    handleFormat: format,
    rateLimit,
    rateLimited: rateLimited(rateLimit, rateLimit.windowSeconds),
  });
  const openApi = createOpenApiFile(openApiDocument, config);
  const health = createHealth({
    rpc: chain.rpc,
    socialClient: social.client,
    hasRedis: redis !== undefined,
    warnings,
    refreshWarnings: chain.metrics.refreshBalance,
    registry,
  });
  const pages = createPages({
    basePath: config.basePath,
    publicUrl: config.publicUrl,
    schema,
    openApi: openApiDocument,
    handlePattern: format.pattern,
    cluster: () => nameOfCluster(chain.rpc.genesisHash()),
    sandboxAccounts: sandbox?.accounts ?? [],
  });

  const operate = withRateLimit(graphql.answer);
  const routes: Record<string, Route> = {
    "/wallet/lookup": {
      operation: "lookup",
      GET: withRateLimit(createLookupHandler(prepare, format, config.basePath)),
    },
    "/collect": {
      operation: "collect",
      POST: withRateLimit(createCollectHandler(prepare)),
      answerFailure: (error) => answerError(error, COLLECT_FAILURE),
    },
    "/graphql": {
      operation: "graphql",
      GET: (request, scope) =>
        wantsGraphiQL(request) ? pages.graphiql(request, scope) : operate(request, scope),
      POST: operate,
      answerFailure: graphql.answerFailure,
    },
    "/livez": { GET: health.livez },
    "/readyz": { GET: health.readyz({ details: config.adminPort === undefined }) },
    "/openapi.json": { GET: openApi },
    ...pages.routes,
    ...(sandbox && { "/sandbox/fees": { POST: withRateLimit(sandbox.handleFees) } }),
  };
  /** Served on ADMIN_PORT if it is set, else on PORT with the other routes. */
  const adminRoutes: Record<string, Route> = {
    "/livez": { GET: health.livez },
    "/readyz": { GET: health.readyz({ details: true }) },
    "/metrics": { GET: createMetricsHandler(registry), isPrivate: true },
  };
  const streams = createStreams(config, registry);
  const scopeNeeds = {
    identifyClient: createIdentifyClient(config.trustProxy, config.trustedCallers, () => {
      warnings.raise("proxy", FORGOTTEN_PROXY);
    }),
    cors: createCors(config.corsOrigins, config.publicUrl),
    rateLimit: createRateLimit(rateLimit, redis),
    loaderSources: { accountLookup: social.accountLookup, balances: chain.balances },
    streams,
    metrics: createRequestMetrics(registry),
    log,
    errorLink: descriptionLink(config.basePath),
  };
  const serve = (served: Record<string, Route>, needs = scopeNeeds): Responder => {
    const paths = Object.entries(served).map(
      ([path, route]) => [config.basePath + path, route] as const,
    );
    const { basePath } = config;
    return {
      handle: createRouter({ ...needs, basePath, routes: new Map(paths) }),
      writeRefusal: createWriteRefusal({ ...needs, basePath, format }),
    };
  };

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
          ...{ config, rpc: chain.rpc, client: social.client, redis, log },
          setFeePayerBalance(lamports) {
            health.chainRead();
            chain.metrics.setBalance(lamports);
          },
        }),
      );
      chain.deploys.start();
    },
    /** Answers the requests to PORT. */
    api: serve(config.adminPort === undefined ? { ...routes, ...adminRoutes } : routes),
    /** Answers the requests to ADMIN_PORT. */
    admin: serve(adminRoutes, { ...scopeNeeds, cors: withoutHeaders(scopeNeeds.cors) }),

    /**
     * Makes `/readyz` return 503 from now on, and disconnects all streams, whose callers then
     * connect elsewhere.
     */
    drain() {
      health.drain();
      streams.close();
    },
    /** Resolves when no transaction is in flight. */
    settled: chain.collector.settled,
    /** The signatures of the transactions in flight. */
    openSignatures: chain.collector.openSignatures,
    /** Resolves when Redis has the outcomes of all collects, or after five seconds. */
    outcomesWritten: async () => redis?.flush(WRITE_OUTCOMES_MS),
    /** The number of collects whose outcome Redis does not have yet. */
    unwrittenOutcomes: () => redis?.unwritten() ?? 0,
    close(): void {
      chain.deploys.stop();
      chain.replicas.stop();
      redis?.close();
    },
  };
}

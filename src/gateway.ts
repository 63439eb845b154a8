import { Registry } from "@prometheus-io/client";
import { createServerAdapter } from "@whatwg-node/server";
import { createBatchMetrics } from "./upstream/batch-metrics.ts";
import { createReadAccounts } from "./chain/accounts.ts";
import { createAddresses } from "./chain/addresses.ts";
import { createClaims } from "./chain/collect/account-lock.ts";
import { createCollectMetrics } from "./chain/collect/collect-metrics.ts";
import { createCollector } from "./chain/collect/collector.ts";
import { createFeeBudget } from "./chain/collect/fee-budget.ts";
import { createFeePayer } from "./chain/collect/fee-payer.ts";
import { createLaunchpad } from "./chain/launchpad/instructions.ts";
import { createRehearsals } from "./chain/collect/simulation.ts";
import { createRpc } from "./chain/rpc/rpc-client.ts";
import { createVaults } from "./chain/balances.ts";
import type { Config } from "./config.ts";
import { createClientAddress } from "./http/client-address.ts";
import { createEdge, limited, type Route } from "./http/router.ts";
import { createFastPath } from "./http/fast-path.ts";
import { createHealth } from "./http/health.ts";
import { createOpenApi } from "./rest/openapi.ts";
import { createRateLimit } from "./http/rate-limit/rate-limit.ts";
import { createMetrics, createRequestMetrics } from "./http/metrics.ts";
import { createPages } from "./http/pages/pages.ts";
import { createLogger, type Logger } from "./observability/log.ts";
import { createRedis } from "./upstream/redis.ts";
import type { Services } from "./resolvers/context.ts";
import { handleFormat } from "./resolvers/look-up-wallet.ts";
import { COLLECT_ENDPOINT, createCollect } from "./rest/collect.ts";
import { createLookUp, createLookupHandler, lookupEndpoint } from "./rest/lookup.ts";
import { createPrepare } from "./rest/prepared-operation.ts";
import { wantsGraphiQL, type PlayAccount } from "./http/pages/graphiql.ts";
import { schema } from "./schema/schema.ts";
import { createGraphQL } from "./graphql/endpoint.ts";
import { createSocialClient } from "./social/api-client.ts";
import { createDirectory } from "./social/account-lookup.ts";
import { createGuard } from "./social/circuit-breaker.ts";
import { checkUpstreams } from "./preflight.ts";
import { createCallUpstream } from "./upstream/http.ts";

/**
 * Puts the parts together. The gateway listens to nothing: `fetch` takes a Request, and the address of
 * the socket that it came from, and gives a Response; any fetch runtime can host it. `playAccounts` are the
 * accounts of a sandbox, which the pages name; else there are none. `redisAnswerTimeoutMs` bounds the wait for
 * one answer of Redis; see {@link createRedis} for its default.
 */
export function createGateway(
  config: Config,
  {
    log = createLogger(config.logLevel),
    playAccounts = [],
    redisAnswerTimeoutMs,
  }: {
    log?: Logger;
    playAccounts?: readonly PlayAccount[] | undefined;
    redisAnswerTimeoutMs?: number;
  } = {},
) {
  const { secrets, chain } = config;
  const registry = new Registry();
  const redis =
    secrets.redisUrl &&
    createRedis({ url: secrets.redisUrl, log, registry, answerTimeoutMs: redisAnswerTimeoutMs });

  const callUpstream = createCallUpstream(registry);
  const batchMetrics = createBatchMetrics(registry);

  const guard = createGuard({ timeoutMs: config.social.timeoutMs, log });
  const client = createSocialClient({
    ...config.social,
    token: secrets.socialApiToken,
    guard,
    callUpstream,
    log,
  });
  const directory = createDirectory({
    ...config.social,
    client,
    redis,
    metrics: batchMetrics("social"),
  });

  const rpc = createRpc({ urls: secrets.rpcUrls, timeoutMs: chain.rpcTimeoutMs, callUpstream, log });
  const readAccounts = createReadAccounts(rpc, batchMetrics("chain"));
  const vaults = createVaults(rpc, readAccounts);
  const payer = secrets.feePayer.publicKey;
  const feePayer = createFeePayer({
    ...config.collect,
    keypair: secrets.feePayer,
    programIds: [chain.launchpadProgramId, chain.launchpadAmmProgramId],
    budget: createFeeBudget({ ...config.collect, feePayer: payer.toBase58(), redis }),
  });
  const launchpad = createLaunchpad(chain);
  const collector = createCollector({
    ...config.collect,
    rpc,
    vaults,
    rehearsals: createRehearsals({ ...config.collect, rpc, vaults, launchpad, payer }),
    feePayer,
    claims: createClaims({ feePayer: payer.toBase58(), redis }),
    metrics: createCollectMetrics(registry, async () => {
      const [account] = await readAccounts([payer.toBase58()]);
      if (!account || account instanceof Error) throw account ?? new Error("no answer");
      return account.lamports;
    }),
    log,
  });

  const services: Services = {
    handleFormat: handleFormat(config.allowUnderscore),
    directory,
    addressesOf: createAddresses(chain),
    vaults,
    collector,
  };
  const prepare = createPrepare(schema, services);
  const lookUp = createLookUp(prepare);
  const lookup = createLookupHandler(lookUp, services.handleFormat);
  const collect = createCollect(prepare);
  const graphql = createGraphQL({ schema, endpoint: `${config.basePath}/graphql`, services, log });
  const health = createHealth({ rpc });
  const pages = createPages({ basePath: config.basePath, schema, playAccounts });

  const openApi = createOpenApi({
    ...config,
    schema,
    endpoints: [lookupEndpoint(services.handleFormat), COLLECT_ENDPOINT],
  });

  const routes: Record<string, Route> = {
    "/wallet/lookup": {
      operation: "lookup",
      GET: limited((_request, call, url) => lookup(url.searchParams, call)),
    },
    "/collect": { operation: "collect", POST: limited(collect) },
    "/graphql": {
      operation: "graphql",
      GET: (request, call, url) =>
        wantsGraphiQL(request) ? pages.graphiql(request, call, url) : graphql.handle(request, call),
      POST: graphql.handle,
    },
    "/livez": { GET: health.livez },
    "/readyz": { GET: health.readyz },
    "/openapi.json": { GET: openApi },
    "/metrics": { GET: createMetrics(registry) },
    ...pages.routes,
  };
  const callNeeds = {
    clientAddress: createClientAddress(config.trustedProxies),
    rateLimit: createRateLimit(config.rateLimit, redis),
    metrics: createRequestMetrics(registry),
    log,
  };
  const edge = createEdge({
    ...callNeeds,
    routes: new Map(Object.entries(routes).map(([path, route]) => [config.basePath + path, route])),
  });
  const adapter = createServerAdapter<{ remoteAddress?: string | undefined }>(edge);

  void vaults.warmUp();

  /** Resolves when Redis, if there is one, is there or has had its time. */
  const ready = redis?.ready ?? Promise.resolve();

  return {
    ready,
    /** Of its metrics. Those of the process are whoever's the process is. */
    registry,
    /**
     * Looks at the upstreams and tells the log what it finds; not ready until then.
     *
     * @throws {StartError}
     */
    start: () =>
      health.starting(Promise.all([ready, checkUpstreams({ config, rpc, readAccounts, client, log })])),
    fetch: adapter.fetch,
    /** node:http's way in. */
    handleNode: createFastPath({
      ...callNeeds,
      basePath: config.basePath,
      lookUp,
      graphql,
      otherwise: adapter.handle,
    }),

    /** Says from now on that it is not ready. */
    drain: health.drain,
    /** Resolves when no transaction is under way. */
    settled: collector.settled,
    /** The signatures of the transactions under way. */
    openSignatures: collector.openSignatures,
    /** Lets go of Redis. */
    close: () => redis?.close(),
  };
}

import { Registry } from "@prometheus-io/client";
import { createServerAdapter } from "@whatwg-node/server";
import { createReadAccounts } from "./chain/accounts.ts";
import { createAddresses } from "./chain/addresses.ts";
import { createClaims } from "./chain/claims.ts";
import { createCollector } from "./chain/collector.ts";
import { createFeeBudget } from "./chain/fee-budget.ts";
import { createFeePayer } from "./chain/fee-payer.ts";
import { createLaunchpad } from "./chain/launchpad.ts";
import { createRehearsals } from "./chain/rehearsal.ts";
import { createRpc } from "./chain/rpc.ts";
import { createVaults } from "./chain/vaults.ts";
import type { Config } from "./config.ts";
import { createClientAddress } from "./http/client-address.ts";
import { createEdge, limited, type Route } from "./http/edge.ts";
import { createFastPath } from "./http/fast-path.ts";
import { createHealth } from "./http/health.ts";
import { createRateLimit } from "./http/rate-limit.ts";
import { createMetrics } from "./http/metrics.ts";
import { createLogger } from "./log.ts";
import { createRedis } from "./redis.ts";
import type { Services } from "./resolvers/context.ts";
import { handleFormat } from "./resolvers/look-up-wallet.ts";
import { createCollect } from "./rest/collect.ts";
import { createLookUp, createLookupHandler } from "./rest/lookup.ts";
import { createPrepare } from "./rest/operation.ts";
import { schema } from "./schema/schema.ts";
import { createGraphQL } from "./schema/yoga.ts";
import { createSocialClient } from "./social/client.ts";
import { createDirectory } from "./social/directory.ts";
import { createGuard } from "./social/guard.ts";

/**
 * Puts the parts together. The gateway listens to nothing: `fetch` takes a Request, and the address of
 * the socket that it came from, and gives a Response; any fetch runtime can host it.
 */
export function createGateway(config: Config, { log = createLogger(config.logLevel) } = {}) {
  const { secrets, chain } = config;
  const registry = new Registry();
  const redis = secrets.redisUrl && createRedis({ url: secrets.redisUrl, log, registry });

  const guard = createGuard({ timeoutMs: config.social.timeoutMs, log });
  const client = createSocialClient({ ...config.social, token: secrets.socialApiToken, guard, log });
  const directory = createDirectory({ ...config.social, client, redis });

  const rpc = createRpc({ urls: secrets.rpcUrls, timeoutMs: chain.rpcTimeoutMs, log });
  const vaults = createVaults(rpc, createReadAccounts(rpc));
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

  const routes: Record<string, Route> = {
    "/wallet/lookup": { GET: limited((request, _call, url) => lookup(url.searchParams, request)) },
    "/collect": { POST: limited((request) => collect(request)) },
    "/graphql": { GET: graphql.handle, POST: graphql.handle },
    "/livez": { GET: health.livez },
    "/readyz": { GET: health.readyz },
    "/metrics": { GET: createMetrics(registry) },
  };
  const callNeeds = {
    clientAddress: createClientAddress(config.trustedProxies),
    rateLimit: createRateLimit(config.rateLimit, redis),
    log,
  };
  const edge = createEdge({
    ...callNeeds,
    routes: new Map(Object.entries(routes).map(([path, route]) => [config.basePath + path, route])),
  });
  const adapter = createServerAdapter<{ remoteAddress?: string | undefined }>(edge);

  void vaults.warmUp();

  return {
    /** Resolves when it may be sent requests: Redis, if there is one, is there or has had its time. */
    ready: redis?.ready ?? Promise.resolve(),
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

import { Gauge } from "@prometheus-io/client";
import { Response } from "@whatwg-node/fetch";
import type { HandleFormat } from "../contract/handle.ts";
import { respondJson } from "../contract/http-messages.ts";
import { createGraphQLEndpoint } from "../graphql/graphql-endpoint.ts";
import { COMMIT, VERSION } from "../observability/version.ts";
import type { Warnings } from "../observability/warnings.ts";
import type { UseCases } from "../resolvers/use-cases.ts";
import { createCollectHandler, toCollectErrorBody } from "../rest/collect.ts";
import { createPrepareOperation } from "../rest/prepared-operation.ts";
import { createWalletHandlers } from "../rest/wallets.ts";
import { schema } from "../schema/schema.ts";
import type { Redis } from "../store/redis.ts";
import { createIdentifyClient } from "./client-address.ts";
import { createCors } from "./cors.ts";
import type { Health } from "./health.ts";
import type { ExampleAccount } from "./pages/graphiql.ts";
import { createPages, type PageSettings } from "./pages/pages.ts";
import { createRateLimit, type RateLimitConfig } from "./rate-limit/rate-limit.ts";
import { createOpenScope, type RequestScopeNeeds } from "./request-scope.ts";
import { createRouter, type Route } from "./router.ts";
import type { Responder } from "./server.ts";

const FORGOTTEN_PROXY =
  "X-Forwarded-For arrives from a private address that is not in TRUST_PROXY: if that is your proxy, all callers behind it share one rate limit until you add its address";

/** What the sandbox adds to the API. */
export interface SandboxRoutes {
  readonly accounts: readonly ExampleAccount[];
  readonly routes: Readonly<Record<string, Route>>;
}

interface ApiNeeds extends Omit<RequestScopeNeeds, "rateLimit"> {
  readonly settings: PageSettings &
    RateLimitConfig & {
      /** Serves the health checks, the metrics and the status if it is set. */
      readonly adminPort?: number | undefined;
      readonly trustProxy: readonly string[];
      readonly trustedCallers: readonly string[];
    };
  readonly handleFormat: HandleFormat;
  readonly useCases: UseCases;
  /** The chain's cluster, such as `devnet`. */
  readonly cluster: () => string;
  readonly health: Health;
  /** The body of `/status`. */
  readonly describeReplica: () => Promise<object>;
  readonly sandbox: SandboxRoutes | undefined;
  readonly redis: Redis | undefined;
  readonly warnings: Warnings;
}

/** Creates the HTTP API: what answers the requests to PORT and to ADMIN_PORT. */
export function createHttpApi(needs: ApiNeeds): { api: Responder; admin: Responder } {
  const { settings, handleFormat, useCases, health, sandbox, registry, warnings, log } = needs;
  new Gauge({
    name: "tributary_build_info",
    help: "Always 1; the labels are the service's version and commit.",
    labelNames: ["version", "commit"],
    registers: [registry],
  }).set({ version: VERSION, commit: COMMIT }, 1);
  const { basePath, adminPort } = settings;
  const pages = createPages({ ...needs, ...settings, schema, sandboxAccounts: sandbox?.accounts });
  const prepare = createPrepareOperation(schema, useCases);
  const graphql = createGraphQLEndpoint({ schema, path: `${basePath}/graphql`, useCases });
  const { lookup, wallets } = createWalletHandlers(prepare, handleFormat);
  const livez: Route = { GET: health.livez };
  const metrics: Route = {
    GET: async () =>
      new Response(await registry.metrics(), { headers: { "content-type": registry.contentType } }),
    isPrivate: true,
  };

  const routes: Record<string, Route> = {
    "/wallet/lookup": { operation: "lookup", GET: lookup },
    "/wallets": { operation: "lookup", GET: wallets },
    "/wallets.csv": { operation: "lookup", GET: wallets },
    "/collect": {
      operation: "collect",
      POST: createCollectHandler(prepare),
      toErrorBody: toCollectErrorBody,
    },
    "/graphql": { operation: "graphql", GET: pages.orGraphiQL(graphql), POST: graphql },
    "/livez": livez,
    "/readyz": {
      GET: (_request, { isLocal }) => health.readyz(adminPort === undefined && isLocal),
    },
    ...(adminPort === undefined && { "/metrics": metrics }),
    ...pages.routes,
    ...sandbox?.routes,
  };
  const adminRoutes: Record<string, Route> = {
    "/livez": livez,
    "/readyz": { GET: () => health.readyz(true) },
    "/metrics": metrics,
    "/status": { GET: async () => respondJson(200, await needs.describeReplica()) },
  };

  const rateLimit = createRateLimit(settings, needs.redis);
  const openScope = createOpenScope({ ...needs, rateLimit });
  const cors = createCors(settings.corsOrigins, settings.publicUrl);
  const identifyClient = createIdentifyClient(settings.trustProxy, settings.trustedCallers, () => {
    warnings.raise("proxy", FORGOTTEN_PROXY);
  });
  const serve = (served: Record<string, Route>, isPrivate: boolean): Responder => ({
    fetch: createRouter({ basePath, cors, openScope, routes: served, isPrivate }),
    identifyClient,
    log,
  });
  return { api: serve(routes, false), admin: serve(adminRoutes, true) };
}

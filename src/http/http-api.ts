import type { Registry } from "@prometheus-io/client";
import type { HandleFormat } from "../contract/handle.ts";
import { respondJson, type ReadBody } from "../contract/http-messages.ts";
import { createGraphQLEndpoint } from "../graphql/graphql-endpoint.ts";
import type { Warnings } from "../observability/warnings.ts";
import type { UseCases } from "../resolvers/use-cases.ts";
import { createCollectHandler, toCollectErrorBody } from "../rest/collect.ts";
import { createLookupHandler } from "../rest/lookup.ts";
import { createWalletsHandler } from "../rest/wallets.ts";
import { createPrepareOperation } from "../rest/prepared-operation.ts";
import { schema } from "../schema/schema.ts";
import type { Redis } from "../store/redis.ts";
import { createIdentifyClient } from "./client-address.ts";
import { createCors } from "./cors.ts";
import type { Health } from "./health.ts";
import { createMetricsHandler, createRequestMetrics } from "./metrics.ts";
import type { ExampleAccount } from "./pages/graphiql.ts";
import { createPages, type PageSettings } from "./pages/pages.ts";
import { createRateLimit, WINDOW_SECONDS } from "./rate-limit/rate-limit.ts";
import type { RequestScopeNeeds } from "./request-scope.ts";
import { createRouter, type Handler, type Route } from "./router.ts";
import type { Responder } from "./server.ts";

const FORGOTTEN_PROXY =
  "X-Forwarded-For arrives from a private address that is not in TRUST_PROXY: if that is your proxy, all callers behind it share one rate limit until you add its address";

type SandboxHandler = (request: {
  readonly readBody: ReadBody;
  readonly isLocal: boolean;
}) => Promise<Response>;

/** What the sandbox adds to the API. */
export interface SandboxRoutes {
  readonly accounts: readonly ExampleAccount[];
  readonly handleFees: SandboxHandler;
  readonly handleFaults: SandboxHandler;
}

interface ApiNeeds extends Pick<RequestScopeNeeds, "loaderSources" | "streams" | "log"> {
  readonly settings: PageSettings & {
    /** Serves the health checks, the metrics and the status if it is set. */
    readonly adminPort?: number | undefined;
    readonly trustProxy: readonly string[];
    readonly trustedCallers: readonly string[];
    readonly maxCost: number;
    readonly rateLimitWindowSeconds?: number | undefined;
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
  readonly registry: Registry;
  readonly warnings: Warnings;
}

/** Creates the HTTP API: what answers the requests to PORT and to ADMIN_PORT. */
export function createHttpApi(needs: ApiNeeds): { api: Responder; admin: Responder } {
  const { settings, handleFormat, useCases, health, sandbox, warnings, log } = needs;
  const { basePath, adminPort, rateLimitMax: max, maxCost } = settings;
  const { rateLimitWindowSeconds: windowSeconds = WINDOW_SECONDS } = settings;
  const sandboxAccounts = sandbox?.accounts;
  const pages = createPages({ ...needs, ...settings, schema, sandboxAccounts });
  const prepare = createPrepareOperation(schema, useCases);
  const graphql = createGraphQLEndpoint({ schema, path: `${basePath}/graphql`, useCases });
  const wallets: Route = { operation: "lookup", GET: createWalletsHandler(prepare) };
  const livez: Route = { GET: health.livez };
  const metrics: Route = { GET: createMetricsHandler(needs.registry), isPrivate: true };

  const routes: Record<string, Route> = {
    "/wallet/lookup": {
      operation: "lookup",
      GET: createLookupHandler(prepare, handleFormat, basePath),
    },
    "/wallets": wallets,
    "/wallets.csv": wallets,
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
    ...(sandbox && {
      "/sandbox/fees": { POST: inSandbox(sandbox.handleFees) },
      "/sandbox/faults": { POST: inSandbox(sandbox.handleFaults) },
    }),
  };
  const adminRoutes: Record<string, Route> = {
    "/livez": livez,
    "/readyz": { GET: () => health.readyz(true) },
    "/metrics": metrics,
    "/status": { GET: async () => respondJson(200, await needs.describeReplica()) },
  };

  const shared = {
    ...needs,
    basePath,
    cors: createCors(settings.corsOrigins, settings.publicUrl),
    rateLimit: createRateLimit({ max, maxCost, windowSeconds }, needs.redis),
    metrics: createRequestMetrics(needs.registry),
  };
  const identifyClient = createIdentifyClient(settings.trustProxy, settings.trustedCallers, () => {
    warnings.raise("proxy", FORGOTTEN_PROXY);
  });
  const serve = (served: Record<string, Route>, isPrivate: boolean): Responder => ({
    fetch: createRouter({ ...shared, routes: served, isPrivate }),
    identifyClient,
    log,
  });
  return { api: serve(routes, false), admin: serve(adminRoutes, true) };
}

const inSandbox =
  (handle: SandboxHandler): Handler =>
  async (_request, scope) => {
    await scope.admit(1);
    return handle(scope);
  };

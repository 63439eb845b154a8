import type { Registry } from "@prometheus-io/client";
import type { HandleFormat } from "../contract/handle.ts";
import { respondError } from "../contract/http-messages.ts";
import { createGraphQLEndpoint } from "../graphql/graphql-endpoint.ts";
import type { Logger } from "../observability/log.ts";
import type { Warnings } from "../observability/warnings.ts";
import type { LoaderSources } from "../resolvers/loaders.ts";
import type { UseCases } from "../resolvers/use-cases.ts";
import { createCollectHandler, toCollectErrorBody } from "../rest/collect.ts";
import { createLookupHandler } from "../rest/lookup.ts";
import { createOpenApiDocument, descriptionLink } from "../rest/openapi.ts";
import { createWalletsHandler } from "../rest/wallets.ts";
import { createPrepareOperation } from "../rest/prepared-operation.ts";
import { schema } from "../schema/schema.ts";
import type { Redis } from "../store/redis.ts";
import { createIdentifyClient } from "./client-address.ts";
import { createCors, withoutHeaders } from "./cors.ts";
import type { Health } from "./health.ts";
import { createMetricsHandler, createRequestMetrics } from "./metrics.ts";
import { wantsGraphiQL, type ExampleAccount } from "./pages/graphiql.ts";
import { createOpenApiFile } from "./pages/openapi-file.ts";
import { createPages } from "./pages/pages.ts";
import { createRateLimit, WINDOW_SECONDS } from "./rate-limit/rate-limit.ts";
import type { RequestScopeNeeds } from "./request-scope.ts";
import { createRouter, withRateLimit, type Handler, type Route } from "./router.ts";
import type { Responder } from "./server.ts";
import { createStatusHandler, type StatusNeeds } from "./status.ts";
import { createStreams, type Streams } from "./streams.ts";

const FORGOTTEN_PROXY =
  "X-Forwarded-For arrives from a private address that is not in TRUST_PROXY: if that is your proxy, all callers behind it share one rate limit until you add its address";

/** What the sandbox adds to the API. */
export interface SandboxRoutes {
  readonly accounts: readonly ExampleAccount[];
  readonly handleFees: Handler;
}

interface ApiNeeds {
  readonly settings: {
    readonly basePath: string;
    readonly publicUrl?: URL | undefined;
    /** Serves the health checks and the metrics if it is set. */
    readonly adminPort?: number | undefined;
    readonly corsOrigins?: readonly string[] | undefined;
    readonly trustProxy: readonly string[];
    readonly trustedCallers: readonly string[];
    readonly rateLimitMax: number;
    readonly rateLimitWindowSeconds?: number | undefined;
    readonly collectTimeoutMs: number;
    readonly streamsMax: number;
    readonly streamsPerAddress?: number | undefined;
    readonly streamSeconds?: number | undefined;
  };
  readonly handleFormat: HandleFormat;
  readonly useCases: UseCases;
  readonly loaderSources: LoaderSources;
  /** The chain's cluster, such as `devnet`. */
  readonly cluster: () => string;
  readonly health: Pick<Health, "livez" | "readyz">;
  /** What `/status` shows, besides the streams. */
  readonly parts: Omit<StatusNeeds, "streams">;
  readonly sandbox: SandboxRoutes | undefined;
  readonly redis: Redis | undefined;
  readonly registry: Registry;
  readonly warnings: Warnings;
  readonly log: Logger;
}

/** Creates the HTTP API: what answers the requests to PORT and to ADMIN_PORT. */
export function createHttpApi(needs: ApiNeeds) {
  const { settings, registry, redis, warnings, log } = needs;
  const { basePath, rateLimitMax: max } = settings;
  const { rateLimitWindowSeconds: windowSeconds = WINDOW_SECONDS } = settings;
  const streams = createStreams(settings, registry);
  const identifyClient = createIdentifyClient(settings.trustProxy, settings.trustedCallers, () => {
    warnings.raise("proxy", FORGOTTEN_PROXY);
  });
  const scopeNeeds: RequestScopeNeeds = {
    cors: createCors(settings.corsOrigins, settings.publicUrl),
    rateLimit: createRateLimit({ max, windowSeconds }, redis),
    loaderSources: needs.loaderSources,
    streams,
    metrics: createRequestMetrics(registry),
    log,
    errorLink: descriptionLink(basePath),
  };

  function serve(routes: Record<string, Route>, needs: RequestScopeNeeds): Responder {
    const paths = Object.entries(routes).map(([path, route]) => [basePath + path, route] as const);
    const router = createRouter({ ...needs, basePath, routes: new Map(paths) });
    return { ...router, identifyClient, log };
  }

  const routes = createRoutes(needs);
  const adminRoutes = createAdminRoutes(needs, streams);
  return {
    /** Answers the requests to PORT. */
    api: serve(
      settings.adminPort === undefined ? { ...adminRoutes, ...routes } : routes,
      scopeNeeds,
    ),
    /** Answers the requests to ADMIN_PORT. */
    admin: serve(adminRoutes, { ...scopeNeeds, cors: withoutHeaders(scopeNeeds.cors) }),
    /** Disconnects all streams, and refuses new ones. */
    closeStreams: streams.close,
  };
}

function createRoutes(needs: ApiNeeds): Record<string, Route> {
  const { settings, handleFormat, useCases, health, sandbox } = needs;
  const { basePath, publicUrl } = settings;
  const openApi = createOpenApiDocument({
    basePath,
    isOpenToAllPages: settings.corsOrigins === undefined,
    collectTimeoutMs: settings.collectTimeoutMs,
    handleFormat,
    rateLimitMax: settings.rateLimitMax,
  });
  const pages = createPages({
    basePath,
    publicUrl,
    schema,
    openApi,
    handlePattern: handleFormat.pattern,
    cluster: needs.cluster,
    sandboxAccounts: sandbox?.accounts ?? [],
  });
  const prepare = createPrepareOperation(schema, useCases);
  const wallets = (format: "csv" | undefined) =>
    withRateLimit(createWalletsHandler(prepare, format));
  const graphql = createGraphQLEndpoint({ schema, path: `${basePath}/graphql`, useCases });
  return {
    "/wallet/lookup": {
      operation: "lookup",
      GET: withRateLimit(createLookupHandler(prepare, handleFormat, basePath)),
    },
    "/wallets": { operation: "lookup", GET: wallets(undefined) },
    "/wallets.csv": { operation: "lookup", GET: wallets("csv") },
    "/collect": {
      operation: "collect",
      POST: withRateLimit(createCollectHandler(prepare)),
      respondFailure: (error) => respondError(error, toCollectErrorBody),
    },
    "/graphql": {
      operation: "graphql",
      GET: (request, scope) =>
        wantsGraphiQL(request) ? pages.graphiql(request, scope) : graphql(request, scope),
      POST: graphql,
    },
    "/livez": { GET: health.livez },
    "/readyz": {
      GET: (_request, { isLocal }) => health.readyz(settings.adminPort === undefined && isLocal),
    },
    "/openapi.json": { GET: createOpenApiFile(openApi, { basePath, publicUrl }) },
    ...pages.routes,
    ...(sandbox && { "/sandbox/fees": { POST: withRateLimit(sandbox.handleFees) } }),
  };
}

/** Served on ADMIN_PORT if it is set, else on PORT with the other routes, but without `/status`. */
function createAdminRoutes(needs: ApiNeeds, streams: Streams): Record<string, Route> {
  const { settings, health, parts, registry } = needs;
  return {
    "/livez": { GET: health.livez },
    "/readyz": { GET: () => health.readyz(true) },
    "/metrics": { GET: createMetricsHandler(registry), isPrivate: true },
    ...(settings.adminPort !== undefined && {
      "/status": { GET: createStatusHandler({ ...parts, streams }), isPrivate: true },
    }),
  };
}

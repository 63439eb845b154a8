import type { Registry } from "@prometheus-io/client";
import type { HandleFormat } from "../contract/handle.ts";
import { respondJson, type ReadBody } from "../contract/http-messages.ts";
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
import { createCors } from "./cors.ts";
import type { Health } from "./health.ts";
import { createMetricsHandler, createRequestMetrics } from "./metrics.ts";
import { wantsGraphiQL, type ExampleAccount } from "./pages/graphiql.ts";
import { createOpenApiFile } from "./pages/openapi-file.ts";
import { createPages } from "./pages/pages.ts";
import { createRateLimit, WINDOW_SECONDS } from "./rate-limit/rate-limit.ts";
import { createRouter, type Handler, type Route } from "./router.ts";
import type { Responder } from "./server.ts";
import type { Streams } from "./streams.ts";

const FORGOTTEN_PROXY =
  "X-Forwarded-For arrives from a private address that is not in TRUST_PROXY: if that is your proxy, all callers behind it share one rate limit until you add its address";

/** As in a client's address. */
const LOOPBACK = /^(127\.|::\/)/;

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

interface ApiNeeds {
  readonly settings: {
    readonly basePath: string;
    readonly publicUrl?: URL | undefined;
    /** Serves the health checks, the metrics and the status if it is set. */
    readonly adminPort?: number | undefined;
    readonly corsOrigins?: readonly string[] | undefined;
    readonly trustProxy: readonly string[];
    readonly trustedCallers: readonly string[];
    readonly rateLimitMax: number;
    readonly maxCost: number;
    readonly rateLimitWindowSeconds?: number | undefined;
    readonly collectTimeoutMs: number;
  };
  readonly handleFormat: HandleFormat;
  readonly useCases: UseCases;
  readonly loaderSources: LoaderSources;
  readonly streams: Streams;
  /** The chain's cluster, such as `devnet`. */
  readonly cluster: () => string;
  readonly health: Pick<Health, "livez" | "readyz">;
  /** The body of `/status`. */
  readonly describeReplica: () => Promise<object>;
  readonly sandbox: SandboxRoutes | undefined;
  readonly redis: Redis | undefined;
  readonly registry: Registry;
  readonly warnings: Warnings;
  readonly log: Logger;
}

/** Creates the HTTP API: what answers the requests to PORT and to ADMIN_PORT. */
export function createHttpApi(needs: ApiNeeds): { api: Responder; admin: Responder } {
  const { settings, registry, warnings, log } = needs;
  const { basePath, rateLimitMax: max, maxCost } = settings;
  const { rateLimitWindowSeconds: windowSeconds = WINDOW_SECONDS } = settings;
  const shared = {
    ...needs,
    basePath,
    cors: createCors(settings.corsOrigins, settings.publicUrl),
    rateLimit: createRateLimit({ max, maxCost, windowSeconds }, needs.redis),
    metrics: createRequestMetrics(registry),
    errorLink: descriptionLink(basePath),
  };
  const identifyClient = createIdentifyClient(settings.trustProxy, settings.trustedCallers, () => {
    warnings.raise("proxy", FORGOTTEN_PROXY);
  });

  function serve(paths: Record<string, Route>, isPrivate: boolean): Responder {
    const routes = new Map(
      Object.entries(paths).map(([path, route]) => [basePath + path, route] as const),
    );
    return { ...createRouter({ ...shared, routes, isPrivate }), identifyClient, log };
  }

  const routes = createRoutes(needs);
  const adminRoutes = createAdminRoutes(needs);
  return {
    /** Answers the requests to PORT. */
    api: serve(settings.adminPort === undefined ? { ...adminRoutes, ...routes } : routes, false),
    /** Answers the requests to ADMIN_PORT. */
    admin: serve(adminRoutes, true),
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
    isSandbox: sandbox !== undefined,
  });
  const pages = createPages({
    basePath,
    publicUrl,
    schema,
    openApi,
    handleFormat,
    cluster: needs.cluster,
    sandboxAccounts: sandbox?.accounts ?? [],
  });
  const prepare = createPrepareOperation(schema, useCases);
  const graphql = createGraphQLEndpoint({ schema, path: `${basePath}/graphql`, useCases });
  return {
    "/wallet/lookup": {
      operation: "lookup",
      GET: createLookupHandler(prepare, handleFormat, basePath),
    },
    "/wallets": { operation: "lookup", GET: createWalletsHandler(prepare) },
    "/wallets.csv": { operation: "lookup", GET: createWalletsHandler(prepare, "csv") },
    "/collect": {
      operation: "collect",
      POST: createCollectHandler(prepare),
      toErrorBody: toCollectErrorBody,
    },
    "/graphql": {
      operation: "graphql",
      GET: (request, scope, connection) =>
        (wantsGraphiQL(request) ? pages.graphiql : graphql)(request, scope, connection),
      POST: graphql,
    },
    "/livez": { GET: health.livez },
    "/readyz": {
      GET: (request, _scope, { client }) =>
        health.readyz(settings.adminPort === undefined && isLocal(request, client.address)),
    },
    "/openapi.json": { GET: createOpenApiFile(openApi, { basePath, publicUrl }) },
    ...pages.routes,
    ...(sandbox && {
      "/sandbox/fees": { POST: inSandbox(sandbox.handleFees) },
      "/sandbox/faults": { POST: inSandbox(sandbox.handleFaults) },
    }),
  };
}

const inSandbox =
  (handle: SandboxHandler): Handler =>
  async (request, { admit, readBody }, { client }) => {
    await admit(1);
    return handle({ readBody, isLocal: isLocal(request, client.address) });
  };

/** Whether a request comes from this machine, and neither through a proxy nor of a page. */
function isLocal({ headers }: Request, address: string): boolean {
  return LOOPBACK.test(address) && !headers.has("x-forwarded-for") && !headers.has("origin");
}

/** Served on ADMIN_PORT if it is set, else on PORT with the other routes, but without `/status`. */
function createAdminRoutes(needs: ApiNeeds): Record<string, Route> {
  const { settings, health, registry } = needs;
  return {
    "/livez": { GET: health.livez },
    "/readyz": { GET: () => health.readyz(true) },
    "/metrics": { GET: createMetricsHandler(registry), isPrivate: true },
    ...(settings.adminPort !== undefined && {
      "/status": { GET: async () => respondJson(200, await needs.describeReplica()) },
    }),
  };
}

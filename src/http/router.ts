import { SpanKind } from "@opentelemetry/api";
import { Response } from "@whatwg-node/fetch";
import { ContractError } from "../contract/contract-error.ts";
import { isErrorCode, rowOf } from "../contract/error-codes.ts";
import { respondError } from "../contract/http-messages.ts";
import { inSpan, markFailed } from "../observability/tracing.ts";
import { descriptionLink } from "./pages/openapi.ts";
import type { Cors } from "./cors.ts";
import type { HttpRequestScope, OpenScope, Operation } from "./request-scope.ts";
import type { Responder } from "./server.ts";

/** Responds to a request. What it throws becomes the error that the caller sees. */
export type Handler = (request: Request, scope: HttpRequestScope) => Response | Promise<Response>;

/**
 * The handlers of a path by method, and the operation that labels its requests in metrics. GET also
 * handles HEAD.
 */
export type Route = Readonly<Partial<Record<"GET" | "POST", Handler>>> & {
  /** A request of an operation counts against the rate limit. GraphQL's says how often. */
  readonly operation?: Operation;
  /** Whether only operators need the path. Its responses then have no CORS headers. */
  readonly isPrivate?: boolean;
  /** The body of a failure. Default: the contract's error body. */
  readonly toErrorBody?: (error: ContractError) => object;
};

const PREFLIGHT = {
  "access-control-allow-methods": "GET, HEAD, POST",
  // Browsers do not count this header among all.
  "access-control-allow-headers": "*, Authorization",
  "access-control-max-age": "86400",
};

/**
 * Balances change, so responses must not be cached. No browser may execute a response that is
 * opened as a page. A route may replace these headers.
 */
const COMMON_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
};

/** The header `Allow` of a path. */
const allowed = ({ GET, POST }: Route): string =>
  [GET && "GET, HEAD", POST && "POST", "OPTIONS"].filter(Boolean).join(", ");

/** Finds the route of a request and runs its handler, with a scope of the request. */
export function createRouter(needs: {
  /** By their paths below `basePath`. */
  readonly routes: Readonly<Record<string, Route>>;
  readonly basePath: string;
  readonly cors: Cors;
  readonly openScope: OpenScope;
  /** Whether only operators need the paths, also those without a route. */
  readonly isPrivate: boolean;
}): Responder["fetch"] {
  const { basePath } = needs;
  const routes = new Map(
    Object.entries(needs.routes).map(([path, route]) => [basePath + path, route] as const),
  );

  /** Names the path that the caller may mean, because many do not see a slash too many. */
  function notFound(path: string): ContractError {
    const similarPath = path.replaceAll(/\/+/g, "/").replace(/(?<=.)\/$/, "");
    if (!routes.has(similarPath)) return new ContractError("NOT_FOUND");
    const message = `There is nothing at this path: it has a slash too many. Use ${similarPath}.`;
    return new ContractError("NOT_FOUND", { message });
  }

  return (request, connection) => {
    const { headers, method } = request;
    const { path, client } = connection;
    const route = routes.get(path);
    const scope = needs.openScope(request, connection, route?.operation);
    const cors = needs.cors(headers);
    const isPrivate = needs.isPrivate || route?.isPrivate;
    const handle = route?.[(method === "HEAD" ? "GET" : method) as "GET"];

    async function respond(): Promise<Response> {
      try {
        if (!cors.isAllowed) throw new ContractError("ORIGIN_NOT_ALLOWED");
        if (!route) throw notFound(path);
        if (method === "OPTIONS") return new Response(null, { status: 204 });
        if (!handle) throw new ContractError("METHOD_NOT_ALLOWED");
        if (route.operation && route.operation !== "graphql") await scope.admit(1);
        return await handle(request, scope);
      } catch (error) {
        const shown = scope.toCallerError(error);
        scope.recordCode(shown.code);
        return respondError(shown, cors.isAllowed && handle ? route.toErrorBody : undefined);
      }
    }

    const description = {
      name: route ? `${method} ${path}` : method,
      kind: SpanKind.SERVER,
      headers,
      /** Those of OpenTelemetry for HTTP servers, without the query's handles. */
      attributes: {
        "http.request.method": method,
        "url.path": path,
        "url.scheme":
          client.isForwarded && headers.get("x-forwarded-proto") === "https" ? "https" : "http",
        ...(route && { "http.route": path }),
      },
    };
    return inSpan(description, async (span) => {
      const response = await respond();
      const { headers, status } = response;
      const code = scope.answered(status);
      const added = {
        ...COMMON_HEADERS,
        "x-request-id": scope.requestId,
        ...(route && !handle && { allow: allowed(route) }),
        ...(!isPrivate && { ...cors.headers, ...(method === "OPTIONS" && PREFLIGHT) }),
        ...scope.rateLimit?.headers,
        ...(status >= 400 && route?.operation !== "graphql" && { link: descriptionLink(basePath) }),
      };
      for (const [name, value] of Object.entries(added))
        if (name === "vary") headers.append(name, value);
        // Unlike `append`, it leaves the headers in an object, which Node writes at once.
        else if (!headers.has(name)) headers.set(name, value);
      // GraphQL's status is 200 even if the service failed.
      if (isErrorCode(code) && rowOf(code).status >= 500) markFailed(span, code);
      span.setAttribute("http.response.status_code", status);
      // Node drops the body, but would leave a stream open.
      if (method === "HEAD" && !headers.has("content-length")) await response.body?.cancel();
      return response;
    });
  };
}

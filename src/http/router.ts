import { SpanKind } from "@opentelemetry/api";
import { Response } from "@whatwg-node/fetch";
import { ContractError, errorWithPath } from "../contract/contract-error.ts";
import { isErrorCode, rowOf } from "../contract/error-codes.ts";
import { respondError } from "../contract/http-messages.ts";
import { inSpan, markFailed, type SpanDescription } from "../observability/tracing.ts";
import { NO_CONNECTION, type CallerConnection } from "./caller-connection.ts";
import type { Cors } from "./cors.ts";
import type { Operation } from "./metrics.ts";
import {
  createRequestScope,
  type HttpRequestScope,
  type RequestScopeNeeds,
} from "./request-scope.ts";
import type { Responder } from "./server.ts";

/** Responds to a request. What it throws becomes the error that the caller sees. */
export type Handler = (
  request: Request,
  scope: HttpRequestScope,
  connection: CallerConnection,
) => Response | Promise<Response>;

/**
 * The handlers of a path by method, and the operation that labels its requests in metrics. GET also
 * handles HEAD.
 */
export type Route = Readonly<Partial<Record<"GET" | "POST", Handler>>> & {
  readonly operation?: Operation;
  /** Whether only operators need the path. Its responses then have no CORS headers. */
  readonly isPrivate?: boolean;
  /** The body of a failure. Default: the contract's error body. */
  readonly toErrorBody?: (error: ContractError) => object;
};

const METHODS = ["GET", "POST"] as const;
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;

/**
 * Balances change, so responses must not be cached. No browser may execute a response that is
 * opened as a page. A route may replace these headers.
 */
const COMMON_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
};

/** Finds the route of a request and runs its handler, with a scope of the request. */
export function createRouter(
  needs: RequestScopeNeeds & {
    readonly routes: ReadonlyMap<string, Route>;
    readonly basePath: string;
    readonly cors: Cors;
    /** The header `Link` of REST errors. */
    readonly errorLink: string;
    /** Whether only operators need the paths, also those without a route. */
    readonly isPrivate: boolean;
  },
): Pick<Responder, "fetch" | "refuse"> {
  const { routes, basePath, cors } = needs;

  /** Names the path that the caller may mean, because many do not see a slash too many. */
  function notFound(path: string): ContractError {
    const similarPath = path.replaceAll(/\/+/g, "/").replace(/(?<=.)\/$/, "");
    if (!routes.has(similarPath)) return errorWithPath("NOT_FOUND", basePath);
    const message = `There is nothing at this path: it has a slash too many. Use ${similarPath}.`;
    return new ContractError("NOT_FOUND", { message });
  }

  async function respond(
    request: Request,
    scope: HttpRequestScope,
    connection: CallerConnection,
    route: Route | undefined,
  ): Promise<Response> {
    const { method, headers } = request;
    if (!cors.isAllowed(headers, route?.operation !== undefined))
      return refuse(scope, new ContractError("ORIGIN_NOT_ALLOWED"));
    if (!route) return refuse(scope, notFound(connection.path));
    const methods = METHODS.filter((name) => route[name]);
    const allow = [...methods, "OPTIONS"].join(", ").replace("GET", "GET, HEAD");
    if (method === "OPTIONS") return preflight(allow, needs.isPrivate || route.isPrivate);
    const name = methods.find((each) => each === (method === "HEAD" ? "GET" : method));
    if (!name) {
      const message = `${method} is not allowed here; use ${methods.join(" or ")}.`;
      const response = refuse(scope, new ContractError("METHOD_NOT_ALLOWED", { message }));
      response.headers.set("allow", allow);
      return response;
    }
    try {
      return await route[name]!(request, scope, connection);
    } catch (error) {
      if (!scope.signal.aborted)
        return refuse(scope, scope.toCallerError(error), route.toErrorBody);
      // Never sent.
      scope.log.debug({ err: error }, "the caller disconnected");
      scope.recordCode("ABORTED");
      return respondError(new ContractError("LOOKUP_FAILED"));
    }
  }

  /** Adds the headers that every response has. Counts and logs the request. Returns its code. */
  function complete(
    { headers, status }: Response,
    received: Headers,
    scope: HttpRequestScope,
    route?: Route,
  ): string {
    for (const [name, value] of Object.entries(COMMON_HEADERS))
      if (!headers.has(name)) headers.set(name, value);
    if (!needs.isPrivate && !route?.isPrivate)
      for (const [name, value] of Object.entries(cors.headers(received)))
        headers.append(name, value);
    headers.set("x-request-id", scope.requestId);
    if (scope.rateLimit) {
      headers.set("ratelimit-policy", scope.rateLimit.policyHeader);
      headers.set("ratelimit", scope.rateLimit.rateLimitHeader);
    }
    if (status >= 400 && route?.operation !== "graphql") headers.set("link", needs.errorLink);
    return scope.answered(status);
  }

  return {
    fetch(request, connection) {
      const { headers, method } = request;
      const route = routes.get(connection.path);
      const scope = createRequestScope(needs, headers, connection, route?.operation);
      const describe = () => describeSpan(request, connection, route !== undefined);
      return inSpan(describe, async (span) => {
        const response = await respond(request, scope, connection, route);
        const code = complete(response, headers, scope, route);
        // GraphQL's status is 200 even if the service failed.
        if (span && isErrorCode(code) && rowOf(code).status >= 500) markFailed(span, code);
        span?.setAttribute("http.response.status_code", response.status);
        // Node drops the body, but would leave a stream open.
        if (method === "HEAD" && !response.headers.has("content-length"))
          await response.body?.cancel();
        return response;
      });
    },

    refuse(error) {
      const received = new Headers();
      const scope = createRequestScope(needs, received, NO_CONNECTION);
      const response = refuse(scope, error);
      complete(response, received, scope);
      return response;
    },
  };
}

function preflight(allow: string, isPrivate: boolean | undefined): Response {
  const cors = !isPrivate && {
    "access-control-allow-methods": allow,
    // Browsers do not count this header among all.
    "access-control-allow-headers": "*, Authorization",
    "access-control-max-age": String(PREFLIGHT_MAX_AGE_SECONDS),
  };
  return new Response(null, { status: 204, headers: { allow, ...cors } });
}

function refuse(
  scope: HttpRequestScope,
  error: ContractError,
  toErrorBody?: Route["toErrorBody"],
): Response {
  scope.recordCode(error.code);
  return respondError(error, toErrorBody);
}

/** A span with OpenTelemetry's attributes for HTTP servers, without the query's handles. */
function describeSpan(
  { method, headers }: Request,
  { path, client }: CallerConnection,
  isRoute: boolean,
): SpanDescription {
  const isHttps = client.isForwarded && headers.get("x-forwarded-proto") === "https";
  return {
    name: isRoute ? `${method} ${path}` : method,
    kind: SpanKind.SERVER,
    headers: Object.fromEntries(headers),
    attributes: {
      "http.request.method": method,
      "url.path": path,
      "url.scheme": isHttps ? "https" : "http",
      ...(isRoute && { "http.route": path }),
    },
  };
}

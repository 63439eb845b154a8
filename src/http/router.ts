import { Response } from "@whatwg-node/fetch";
import { ContractError, errorWithPath } from "../contract/contract-error.ts";
import { respondError } from "../contract/http-messages.ts";
import type { CallerConnection } from "./caller-connection.ts";
import { UNKNOWN_CLIENT } from "./client-address.ts";
import { withoutHeaders } from "./cors.ts";
import type { Operation } from "./metrics.ts";
import { HttpRequestScope, type RequestScopeNeeds } from "./request-scope.ts";
import type { Responder } from "./server.ts";

/** Responds to a request. What it throws becomes the error that the caller sees. */
export type Handler = (request: Request, scope: HttpRequestScope) => Response | Promise<Response>;

/**
 * The handlers of a path by method, and the operation that labels its requests in metrics. GET also
 * handles HEAD.
 */
export type Route = Readonly<Partial<Record<"GET" | "POST", Handler>>> & {
  readonly operation?: Operation;
  /** Whether only operators need the path. Its responses then have no CORS headers. */
  readonly isPrivate?: boolean;
  /** Formats a failure. Default: the contract's error body. */
  readonly respondFailure?: (error: ContractError, request: Request) => Response;
};

const METHODS = ["GET", "POST"] as const;
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;

/** Takes one request from the caller's rate limit before the handler runs. */
export function withRateLimit(handler: Handler): Handler {
  return async (request, scope) => {
    await scope.admit(1);
    return handler(request, scope);
  };
}

/** A request that is refused before it has a connection asks for nothing. */
const NO_CONNECTION: CallerConnection = {
  path: "/",
  client: UNKNOWN_CLIENT,
  readBody: () => Promise.resolve(Buffer.alloc(0)),
  signal: new AbortController().signal,
  disconnect: () => undefined,
};

/** Finds the route of a request and runs its handler, with a scope of the request. */
export function createRouter(
  needs: RequestScopeNeeds & { routes: ReadonlyMap<string, Route>; basePath: string },
): Pick<Responder, "fetch" | "refuse"> {
  const { routes, basePath, cors } = needs;
  const privateNeeds = { ...needs, cors: withoutHeaders(cors) };

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
    route: Route | undefined,
  ): Promise<Response> {
    if (!cors.isAllowed(request.headers, route?.operation !== undefined))
      return refuse(scope, new ContractError("ORIGIN_NOT_ALLOWED"));
    if (!route) return refuse(scope, notFound(scope.path));
    const { method } = request;
    if (method === "OPTIONS") return preflight(route, cors.headers(request.headers));
    const name = METHODS.find((each) => each === (method === "HEAD" ? "GET" : method));
    const handle = name && route[name];
    if (!handle) return refuseMethod(method, scope, route);
    try {
      return await handle(request, scope);
    } catch (error) {
      return toFailure(error, request, scope, route);
    }
  }

  return {
    async fetch(request, connection) {
      const route = routes.get(connection.path);
      const { headers, method } = request;
      const scopeNeeds = route?.isPrivate ? privateNeeds : needs;
      const scope = new HttpRequestScope(scopeNeeds, headers, connection, route?.operation);
      const response = await scope.run(method, route && connection.path, () =>
        respond(request, scope, route),
      );
      // Node drops the body, but would leave a stream open.
      if (method === "HEAD" && !response.headers.has("content-length"))
        await response.body?.cancel();
      return response;
    },

    refuse(error) {
      const scope = new HttpRequestScope(needs, new Headers(), NO_CONNECTION);
      return scope.complete(refuse(scope, error));
    },
  };
}

function refuse(scope: HttpRequestScope, error: ContractError): Response {
  scope.recordCode(error.code);
  return respondError(error);
}

/** Converts an error to the response. If the caller has disconnected, it is never sent. */
function toFailure(
  error: unknown,
  request: Request,
  scope: HttpRequestScope,
  route: Route,
): Response {
  if (scope.signal.aborted) {
    scope.log.debug({ err: error }, "the caller disconnected");
    scope.recordCode("ABORTED");
    return respondError(new ContractError("LOOKUP_FAILED"));
  }
  const callerError = scope.toCallerError(error);
  scope.recordCode(callerError.code);
  return route.respondFailure?.(callerError, request) ?? respondError(callerError);
}

function refuseMethod(method: string, scope: HttpRequestScope, route: Route): Response {
  const response = refuse(
    scope,
    new ContractError("METHOD_NOT_ALLOWED", {
      message: `${method} is not allowed here; use ${METHODS.filter((each) => route[each]).join(" or ")}.`,
    }),
  );
  response.headers.set("allow", toAllow(route));
  return response;
}

function preflight(route: Route, corsHeaders: Readonly<Record<string, string>>): Response {
  const allow = toAllow(route);
  const isAllowed = !route.isPrivate && "access-control-allow-origin" in corsHeaders;
  const cors = isAllowed && {
    "access-control-allow-methods": allow,
    // Browsers do not count this header among all.
    "access-control-allow-headers": "*, Authorization",
    "access-control-max-age": String(PREFLIGHT_MAX_AGE_SECONDS),
  };
  return new Response(null, { status: 204, headers: { allow, ...cors } });
}

function toAllow(route: Route): string {
  return [...(route.GET ? ["GET", "HEAD"] : []), ...(route.POST ? ["POST"] : []), "OPTIONS"].join(
    ", ",
  );
}

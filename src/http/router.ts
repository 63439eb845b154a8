import { STATUS_CODES } from "node:http";
import { ContractError } from "../contract/contract-error.ts";
import { respondError, type FailureMembers } from "../rest/respond.ts";
import type { Operation } from "./metrics.ts";
import type { Refusal } from "./refusals.ts";
import { HttpRequestScope, type RequestScopeNeeds } from "./request-scope.ts";

export type Handler = (request: Request, scope: HttpRequestScope, url: URL) => Response | Promise<Response>;

/** The handlers of a path by method, and the operation that labels its requests in metrics. GET also handles HEAD. */
export type Route = Readonly<Partial<Record<"GET" | "POST", Handler>>> & {
  readonly operation?: Operation;
  readonly failureMembers?: FailureMembers;
};

const METHODS = ["GET", "POST"] as const;
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;
/** A longer response costs more than a lookup. Only GraphiQL's files and Swagger UI's script have one. */
const MAX_UNCOUNTED_BYTES = 400_000;

/** Takes one request from the caller's rate limit before the handler runs. */
export function withRateLimit(handler: Handler): Handler {
  return async (request, scope, url) => {
    await scope.admit(1);
    return handler(request, scope, url);
  };
}

/** What the server knows of a request and its connection. */
export interface RequestContext {
  /** The request as received. Absent for a Request without a socket. */
  readonly req?: { readonly url?: string | undefined } | undefined;
  readonly remoteAddress?: string | undefined;
  /** The header `Host` as received. */
  readonly host?: string | undefined;
  /** Aborts when the connection closes. Default: the request's own. */
  readonly signal?: AbortSignal | undefined;
  readonly disconnect?: (() => void) | undefined;
  /** Set if the request is not valid HTTP. */
  readonly refusal?: Refusal | undefined;
}

/** Finds the route of a request, runs its handler, and adds the headers that every response has. */
export function createRouter(
  needs: RequestScopeNeeds & {
    routes: ReadonlyMap<string, Route>;
    /** Answers at unknown paths. */
    notFound: (request: Request) => Response;
    /** Whether a path is only for operators: its responses have no CORS headers. */
    isPrivate: (path: string) => boolean;
    /** Answers requests that are not valid HTTP. */
    respondRefusal: (refusal: Refusal, scope: HttpRequestScope) => Response;
  },
) {
  async function handle(
    request: Request,
    scope: HttpRequestScope,
    url: URL,
    route: Route,
  ): Promise<Response> {
    if (request.method === "OPTIONS") return preflight(route);

    const isHead = request.method === "HEAD";
    const method = isHead ? "GET" : request.method;
    const handler = method === "GET" || method === "POST" ? route[method] : undefined;
    if (!handler) {
      const error = new ContractError("METHOD_NOT_ALLOWED", {
        message: `${request.method} is not allowed here; use ${METHODS.filter((each) => route[each]).join(" or ")}.`,
      });
      scope.recordCode(error.code);
      return respondError(error, { headers: { allow: allowHeader(route) } });
    }
    const response = await handler(isHead ? toGet(request) : request, scope, url);
    if (isHead) {
      void response.body?.cancel();
      return new Response(null, response);
    }
    // A 304 and the answer to HEAD have no body, so they are free.
    if (response.body && Number(response.headers.get("content-length")) > MAX_UNCOUNTED_BYTES)
      await scope.admit(1);
    return response;
  }

  return async (
    request: Request,
    { req, remoteAddress, host, signal = request.signal, disconnect, refusal }: RequestContext,
  ): Promise<Response> => {
    const { headers } = request;
    const origin = {
      remoteAddress,
      forwardedFor: headers.get("x-forwarded-for"),
      pageOrigin: headers.get("origin"),
      fetchSite: headers.get("sec-fetch-site"),
      fetchDestination: headers.get("sec-fetch-dest"),
      host,
    };
    const scope = new HttpRequestScope(needs, origin, { signal, disconnect });
    const url = URL.parse(request.url);
    // Not `url.pathname`: a URL resolves dot segments and backslashes, which hide a path from a proxy that blocks it.
    const path = req?.url?.replace(/\?.*$/s, "") ?? url?.pathname ?? "";
    const route = refusal ? undefined : needs.routes.get(path);
    const received = () => ({ method: request.method, path, route: route && path, headers: request.headers });
    const response = await scope.answer(route?.operation ?? "other", received, async () => {
      try {
        if (refusal) return needs.respondRefusal(refusal, scope);
        if (!url || !route) {
          scope.recordCode("NOT_FOUND");
          return needs.notFound(request);
        }
        return await handle(request, scope, url, route);
      } catch (error) {
        return respondFailure(error, scope, route?.failureMembers);
      }
    });
    // The adapter would write an empty reason phrase.
    if (!response.statusText)
      Object.defineProperty(response, "statusText", { value: STATUS_CODES[response.status] });
    for (const [name, value] of Object.entries({ "cache-control": "no-store", ...scope.headers })) {
      if (name === "vary") response.headers.append(name, value);
      else if (!response.headers.has(name)) response.headers.set(name, value);
    }
    if (needs.isPrivate(path))
      for (const name of [...response.headers.keys()])
        if (name.startsWith("access-control-")) response.headers.delete(name);
    return response;
  };
}

/** The response to a failed request. If the caller has disconnected, it is never sent. */
export function respondFailure(error: unknown, scope: HttpRequestScope, members?: FailureMembers): Response {
  if (scope.signal.aborted) {
    scope.log.debug({ err: error }, "the caller disconnected");
    scope.recordCode("ABORTED");
    return respondError(new ContractError("LOOKUP_FAILED"));
  }
  const shown = scope.toCallerError(error);
  scope.recordCode(shown.code);
  return respondError(shown, { members });
}

function toGet(request: Request): Request {
  return new Request(request.url, { headers: Object.fromEntries(request.headers) });
}

/** The header `Allow` of a path. */
function allowHeader(route: Route): string {
  return [...(route.GET ? ["GET", "HEAD"] : []), ...(route.POST ? ["POST"] : []), "OPTIONS"].join(", ");
}

function preflight(route: Route): Response {
  const allow = allowHeader(route);
  return new Response(null, {
    status: 204,
    headers: {
      allow,
      "access-control-allow-methods": allow,
      "access-control-allow-headers": "*",
      "access-control-max-age": String(PREFLIGHT_MAX_AGE_SECONDS),
    },
  });
}

import { ContractError, toCallerError } from "../contract/errors.ts";
import { respondError } from "../rest/respond.ts";
import { Call, type CallNeeds } from "./request-scope.ts";
import type { Operation } from "./metrics.ts";

export type Handler = (request: Request, call: Call, url: URL) => Response | Promise<Response>;

/** What stands at a path, by method, and what it is in the metrics. HEAD goes where GET goes. */
export type Route = Readonly<Partial<Record<"GET" | "POST", Handler>>> & { readonly operation?: Operation };

const PREFLIGHT_MAX_AGE_SECONDS = 86_400;

/** An operation of the contract: it costs one request, before anything of it is looked at. */
export function limited(handler: Handler): Handler {
  return async (request, call, url) => {
    await call.admit(1);
    return handler(request, call, url);
  };
}

/** The way in: finds the route, counts the caller, and puts on every answer what every answer has. */
export function createEdge(needs: CallNeeds & { routes: ReadonlyMap<string, Route> }) {
  async function answer(request: Request, call: Call, url: URL, route: Route): Promise<Response> {
    if (request.method === "OPTIONS") return preflight(route);

    const isHead = request.method === "HEAD";
    const method = isHead ? "GET" : request.method;
    const handler = method === "GET" || method === "POST" ? route[method] : undefined;
    if (!handler) {
      const error = new ContractError("METHOD_NOT_ALLOWED");
      call.note(error.code);
      return respondError(error, { headers: { allow: allow(route) } });
    }
    const response = await handler(isHead ? toGet(request) : request, call, url);
    return isHead ? new Response(null, response) : response;
  }

  return async (
    request: Request,
    { remoteAddress }: { remoteAddress?: string | undefined },
  ): Promise<Response> => {
    const origin = { remoteAddress, forwardedFor: request.headers.get("x-forwarded-for") };
    const call = new Call(needs, origin, request);
    const url = URL.parse(request.url);
    const route = url ? needs.routes.get(url.pathname) : undefined;
    const response = await call.answer(route?.operation ?? "other", async () => {
      try {
        if (!url || !route) throw new ContractError("NOT_FOUND");
        return await answer(request, call, url, route);
      } catch (error) {
        return explain(error, call);
      }
    });
    for (const [name, value] of Object.entries({ "cache-control": "no-store", ...call.headers })) {
      if (!response.headers.has(name)) response.headers.set(name, value);
    }
    return response;
  };
}

/** The answer to a request that has failed; when its caller has gone away, one that nobody reads. */
export function explain(error: unknown, call: Call): Response {
  if (call.signal.aborted) {
    call.log.debug({ err: error }, "a caller went away");
    call.note("ABORTED");
    return respondError(new ContractError("LOOKUP_FAILED"));
  }
  const shown = toCallerError(error, call.log);
  call.note(shown.code);
  return respondError(shown);
}

function toGet(request: Request): Request {
  return new Request(request.url, { headers: Object.fromEntries(request.headers) });
}

/** The header `Allow`: the methods that a route takes. */
export function allow(route: Readonly<Partial<Record<"GET" | "POST", unknown>>>): string {
  const methods = [...(route.GET ? ["GET", "HEAD"] : []), ...(route.POST ? ["POST"] : []), "OPTIONS"];
  return methods.join(", ");
}

function preflight(route: Route): Response {
  return new Response(null, {
    status: 204,
    headers: {
      allow: allow(route),
      "access-control-allow-methods": allow(route),
      "access-control-allow-headers": "*",
      "access-control-max-age": String(PREFLIGHT_MAX_AGE_SECONDS),
    },
  });
}

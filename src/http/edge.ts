import { ContractError, toCallerError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { respondError } from "../rest/respond.ts";
import { Call, type CallNeeds } from "./call.ts";

export type Handler = (request: Request, call: Call, url: URL) => Response | Promise<Response>;

/** What stands at a path, by method. HEAD goes where GET goes. */
export type Route = Readonly<Partial<Record<"GET" | "POST", Handler>>>;

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
  async function answer(request: Request, call: Call): Promise<Response> {
    const url = URL.parse(request.url);
    const route = url ? needs.routes.get(url.pathname) : undefined;
    if (!url || !route) return respondError(new ContractError("NOT_FOUND"));
    if (request.method === "OPTIONS") return preflight(route);

    const isHead = request.method === "HEAD";
    const method = isHead ? "GET" : request.method;
    const handler = Object.hasOwn(route, method) ? route[method as keyof Route] : undefined;
    if (!handler) {
      return respondError(new ContractError("METHOD_NOT_ALLOWED"), { headers: { allow: allow(route) } });
    }
    const response = await handler(isHead ? toGet(request) : request, call, url);
    return isHead ? new Response(null, response) : response;
  }

  return async (
    request: Request,
    { remoteAddress }: { remoteAddress?: string | undefined },
  ): Promise<Response> => {
    const call = new Call(needs, { remoteAddress, forwardedFor: request.headers.get("x-forwarded-for") });
    const response = await answer(request, call).catch((error: unknown) =>
      explain(error, request.signal, call.log),
    );
    for (const [name, value] of Object.entries(call.headers)) response.headers.set(name, value);
    if (!response.headers.has("cache-control")) response.headers.set("cache-control", "no-store");
    return response;
  };
}

/** The answer to a request that has failed; when its caller has gone away, one that nobody reads. */
export function explain(error: unknown, { aborted }: AbortSignal, log: Logger): Response {
  if (!aborted) return respondError(toCallerError(error, log));
  log.debug({ err: error }, "a caller went away");
  return respondError(new ContractError("LOOKUP_FAILED"));
}

function toGet(request: Request): Request {
  return new Request(request.url, { headers: Object.fromEntries(request.headers) });
}

function allow(route: Route): string {
  const methods = Object.keys(route).flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  return [...methods, "OPTIONS"].join(", ");
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

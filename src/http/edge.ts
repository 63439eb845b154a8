import { randomUUID } from "node:crypto";
import { ContractError, toCallerError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { respondError } from "../rest/respond.ts";
import type { GraphQLCall } from "../schema/yoga.ts";
import type { Origin } from "./client-address.ts";
import type { RateLimit, Verdict } from "./rate-limit.ts";

/** What a handler has of its request beside the request itself. */
interface Call extends GraphQLCall {
  readonly url: URL;
}

export type Handler = (request: Request, call: Call) => Response | Promise<Response>;

/** What stands at a path, by method. HEAD goes where GET goes. */
export type Route = Readonly<Partial<Record<"GET" | "POST", Handler>>>;

/** The API is public and knows no credentials, so any page may call it and read what it answers. */
const CORS_HEADERS = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "Retry-After, RateLimit, RateLimit-Policy, X-Request-Id",
};
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;

/** An operation of the contract: it costs one request, before anything of it is looked at. */
export function limited(handler: Handler): Handler {
  return async (request, call) => {
    await call.admit(1);
    return handler(request, call);
  };
}

/** The way in: finds the route, counts the caller, and puts on every answer what every answer has. */
export function createEdge(needs: {
  routes: ReadonlyMap<string, Route>;
  clientAddress: (origin: Origin) => string;
  rateLimit: RateLimit;
  log: Logger;
}) {
  const { routes, clientAddress, rateLimit } = needs;

  /** Puts the headers that tell of the caller's budget into `headers`, whatever comes of the request. */
  async function answer(
    request: Request,
    remoteAddress: string | undefined,
    headers: Headers,
    log: Logger,
  ): Promise<Response> {
    const url = URL.parse(request.url);
    const route = url ? routes.get(url.pathname) : undefined;
    if (!url || !route) return respondError(new ContractError("NOT_FOUND"));
    if (request.method === "OPTIONS") return preflight(route);

    const isHead = request.method === "HEAD";
    const method = isHead ? "GET" : request.method;
    const handler = Object.hasOwn(route, method) ? route[method as keyof Route] : undefined;
    if (!handler) {
      return respondError(new ContractError("METHOD_NOT_ALLOWED"), { headers: { allow: allow(route) } });
    }
    const caller = clientAddress({ remoteAddress, forwardedFor: request.headers.get("x-forwarded-for") });
    let admitted: Verdict | undefined;
    const call: Call = {
      url,
      async admit(cost) {
        admitted = await rateLimit(caller, cost, admitted?.at);
        headers.set("ratelimit-policy", admitted.policy);
        headers.set("ratelimit", admitted.standing);
        if (admitted.refusal) throw admitted.refusal;
      },
      log,
    };
    const response = await handler(isHead ? toGet(request) : request, call);
    return isHead ? new Response(null, response) : response;
  }

  function explain(error: unknown, request: Request, log: Logger): Response {
    if (!request.signal.aborted) return respondError(toCallerError(error, log));
    log.debug({ err: error }, "a caller went away");
    return respondError(new ContractError("LOOKUP_FAILED"));
  }

  return async (
    request: Request,
    { remoteAddress }: { remoteAddress?: string | undefined },
  ): Promise<Response> => {
    const requestId = randomUUID();
    const log = needs.log.child({ requestId });
    const headers = new Headers({ ...CORS_HEADERS, "x-request-id": requestId });
    const response = await answer(request, remoteAddress, headers, log).catch((error: unknown) =>
      explain(error, request, log),
    );
    for (const [name, value] of headers) response.headers.set(name, value);
    if (!response.headers.has("cache-control")) response.headers.set("cache-control", "no-store");
    return response;
  };
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

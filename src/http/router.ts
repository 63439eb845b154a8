import type { IncomingMessage, ServerResponse } from "node:http";
import { sendNodeResponse } from "@whatwg-node/server";
import { ContractError, errorWithPath } from "../contract/contract-error.ts";
import { answerError, type Answer, type HttpRequest } from "../contract/http-messages.ts";
import { withoutHeaders } from "./cors.ts";
import type { Operation } from "./metrics.ts";
import { readBody } from "./request-body.ts";
import { describeRequest, HttpRequestScope, type RequestScopeNeeds } from "./request-scope.ts";
import type { CallerConnection } from "./streams.ts";

/** Answers a request. Its URL begins with a slash. */
export type HandleNode = (
  request: IncomingMessage,
  response: ServerResponse,
  connection: CallerConnection,
) => Promise<void>;

export type Handler = (request: HttpRequest, scope: HttpRequestScope) => Answer | Promise<Answer>;

/**
 * The handlers of a path by method, and the operation that labels its requests in metrics. GET also
 * handles HEAD.
 */
export type Route = Readonly<Partial<Record<"GET" | "POST", Handler>>> & {
  readonly operation?: Operation;
  /** Whether only operators need the path. Its responses then have no CORS headers. */
  readonly isPrivate?: boolean;
  /** Formats a failure. Default: the contract's error body. */
  readonly answerFailure?: (error: ContractError, request: HttpRequest) => Answer;
};

const METHODS = ["GET", "POST"] as const;
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;
/**
 * A longer body, such as GraphiQL's script, costs the caller one more request: sending it costs
 * more than a lookup.
 */
const MAX_UNCOUNTED_BYTES = 400_000;

/** Takes one request from the caller's rate limit before the handler runs. */
export function withRateLimit(handler: Handler): Handler {
  return async (request, scope) => {
    await scope.admit(1);
    return handler(request, scope);
  };
}

/**
 * Finds the route of a request, runs its handler, and writes its answer with the headers that every
 * response has.
 */
export function createRouter(
  needs: RequestScopeNeeds & { routes: ReadonlyMap<string, Route>; basePath: string },
): HandleNode {
  const privateNeeds = { ...needs, cors: withoutHeaders(needs.cors) };

  async function answer(
    request: HttpRequest,
    sentMethod: string,
    scope: HttpRequestScope,
    route: Route | undefined,
  ): Promise<Answer> {
    try {
      if (!route) throw errorWithPath("NOT_FOUND", needs.basePath);
      const { method } = request;
      if (method === "OPTIONS") return preflight(route, scope);
      const handler = method === "GET" || method === "POST" ? route[method] : undefined;
      if (!handler) return refuseMethod(sentMethod, scope, route);
      const answer = await handler(request, scope);
      // A 304 and the answer to HEAD have no body, so they are free.
      if (
        answer.body instanceof Buffer &&
        answer.body.length > MAX_UNCOUNTED_BYTES &&
        sentMethod !== "HEAD"
      )
        await scope.admit(1);
      return answer;
    } catch (error) {
      return toFailure(error, request, scope, route);
    }
  }

  const handle: HandleNode = async (request, response, connection) => {
    const { method = "GET", url = "/", headers } = request;
    const queryAt = url.indexOf("?");
    // As sent: `URL` would resolve dot segments and backslashes, which can hide a path from a proxy
    // that blocks it.
    const path = queryAt < 0 ? url : url.slice(0, queryAt);
    const route = needs.routes.get(path);
    const scope = new HttpRequestScope(
      route?.isPrivate ? privateNeeds : needs,
      headers,
      connection,
    );
    const httpRequest: HttpRequest = {
      method: method === "HEAD" ? "GET" : method,
      headers,
      query: queryAt < 0 ? "" : url.slice(queryAt + 1).replace(/#.*/s, ""),
      readBody: (maxBytes) => readBody(request, maxBytes),
    };
    const result = await scope.answer(
      route?.operation ?? "other",
      () => describeRequest(method, path, route && path, headers),
      () => answer(httpRequest, method, scope, route),
    );
    await write(response, result, toHeaders(result, scope.headers));
  };

  return async (request, response, connection) => {
    try {
      await handle(request, response, connection);
    } catch (error) {
      // Not an error of the handler, which has an answer: this one leaves the caller without one.
      if (response.destroyed) needs.log.debug({ err: error }, "the caller disconnected");
      else needs.log.error({ err: error }, "a response could not be sent");
      throw error;
    }
  };
}

/** Adds the headers of an answer to `common`, the headers that every response has. */
export function toHeaders(
  { headers }: Answer,
  common: Record<string, string>,
): Record<string, string> {
  const { vary } = common;
  const all = Object.assign(common, headers);
  if (vary && headers.vary) all.vary = `${headers.vary}, ${vary}`;
  return all;
}

async function write(
  response: ServerResponse,
  { status, body }: Answer,
  headers: Record<string, string>,
): Promise<void> {
  if (typeof body === "string") {
    const length = Buffer.byteLength(body);
    headers["content-length"] = String(length);
    // If the request's body is still arriving, respond at once: nobody reads the rest.
    if (response.req.complete) await endOfTurn();
    // Node writes ASCII faster as latin1.
    response.writeHead(status, headers).end(body, length === body.length ? "latin1" : "utf8");
  } else if (body instanceof ReadableStream) {
    if (response.req.method !== "HEAD")
      return sendNodeResponse(
        new Response(body, { status, headers }),
        response,
        response.req,
        false,
      );
    response.writeHead(status, headers).end();
    return body.cancel();
  } else {
    if (body instanceof Buffer) headers["content-length"] = String(body.length);
    response.writeHead(status, headers).end(body);
  }
}

let turn: Promise<void> | undefined;

/**
 * Resolves at the end of the event-loop turn: writing the responses of all requests together takes
 * less CPU time.
 */
function endOfTurn(): Promise<void> {
  return (turn ??= new Promise((resolve) =>
    setImmediate(() => {
      turn = undefined;
      resolve();
    }),
  ));
}

/** Converts an error to the answer. If the caller has disconnected, the answer is never sent. */
function toFailure(
  error: unknown,
  request: HttpRequest,
  scope: HttpRequestScope,
  route?: Route,
): Answer {
  if (scope.signal.aborted) {
    scope.log.debug({ err: error }, "the caller disconnected");
    scope.recordCode("ABORTED");
    return answerError(new ContractError("LOOKUP_FAILED"));
  }
  const callerError = scope.toCallerError(error);
  scope.recordCode(callerError.code);
  return route?.answerFailure?.(callerError, request) ?? answerError(callerError);
}

function refuseMethod(method: string, scope: HttpRequestScope, route: Route): Answer {
  const error = new ContractError("METHOD_NOT_ALLOWED", {
    message: `${method} is not allowed here; use ${METHODS.filter((each) => route[each]).join(" or ")}.`,
  });
  scope.recordCode(error.code);
  const answer = answerError(error);
  return { ...answer, headers: { ...answer.headers, allow: toAllow(route) } };
}

function preflight(route: Route, { headers }: HttpRequestScope): Answer {
  const allow = toAllow(route);
  if (headers["access-control-allow-origin"] === undefined)
    return { status: 204, headers: { allow } };
  return {
    status: 204,
    headers: {
      allow,
      "access-control-allow-methods": allow,
      "access-control-allow-headers": "*",
      "access-control-max-age": String(PREFLIGHT_MAX_AGE_SECONDS),
    },
  };
}

function toAllow(route: Route): string {
  return [...(route.GET ? ["GET", "HEAD"] : []), ...(route.POST ? ["POST"] : []), "OPTIONS"].join(
    ", ",
  );
}

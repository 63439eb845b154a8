import type { IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { MAX_BODY_BYTES, respondGraphQLError } from "../graphql/errors.ts";
import type { GraphQLEndpoint } from "../graphql/graphql-endpoint.ts";
import { EVENT_STREAM } from "../graphql/event-stream.ts";
import { isJson, type ResponseType } from "../graphql/media-types.ts";
import { parseJson } from "../upstream/parse-json.ts";
import type { LookUp } from "../rest/lookup.ts";
import { JSON_HEADERS } from "../rest/respond.ts";
import { HttpRequestScope, type RequestScopeNeeds } from "./request-scope.ts";
import { respondFailure } from "./router.ts";
import type { HandleNode } from "./server.ts";

/** A value without escapes, and no further parameters. The lookup checks the handle's format. */
const PLAIN_VALUE = /^\w*$/;
/** A GET whose `Accept` header contains this may be for GraphiQL. */
const PAGE_TYPE = /text\/(?:html|\*)/i;

/**
 * Answers lookups and known GraphQL operations directly on node:http, without Request, Response and Yoga. Yoga
 * answers operations that are not known. Other requests go to `fallback`, which gives the same answers, only slower.
 */
export function createFastPath(
  needs: RequestScopeNeeds & {
    basePath: string;
    lookUp: LookUp;
    graphql: GraphQLEndpoint;
    fallback: HandleNode;
  },
): HandleNode {
  const { lookUp, graphql, fallback } = needs;
  const lookupPath = `${needs.basePath}/wallet/lookup`;
  const lookupUrlPrefix = `${lookupPath}?handle=`;
  const graphqlUrl = `${needs.basePath}/graphql`;

  async function answerLookup(handle: string, scope: HttpRequestScope): Promise<string | Response> {
    try {
      await scope.admit(1);
      return JSON.stringify(await lookUp(handle, scope));
    } catch (error) {
      return respondFailure(error, scope);
    }
  }

  async function answerOperation(
    request: IncomingMessage,
    type: ResponseType,
    scope: HttpRequestScope,
  ): Promise<string | Response> {
    try {
      await scope.admit(1);
      const isPost = request.method === "POST";
      const body = isPost ? await readBody(request) : undefined;
      const params = body ? parseJson(body.toString()) : toParams(request.url!);
      const cached = await graphql.answerCached(params, scope, { mayMutate: isPost });
      return cached ?? (await graphql.answer(toRequest(request, body), scope));
    } catch (error) {
      if (scope.signal.aborted) return respondFailure(error, scope);
      const shown = scope.toCallerError(error);
      scope.recordCode(shown.code);
      return respondGraphQLError(shown, type);
    }
  }

  return async (request, response, context) => {
    const { method, url = "", headers } = request;
    const isLookup =
      method === "GET" &&
      url.startsWith(lookupUrlPrefix) &&
      PLAIN_VALUE.test(url.slice(lookupUrlPrefix.length));
    const isGraphQL = url === graphqlUrl || url.startsWith(`${graphqlUrl}?`);
    const isOperation =
      method === "POST" ? isPlainJson(request) : method === "GET" && !PAGE_TYPE.test(headers.accept ?? "");
    const type = isGraphQL && isOperation ? graphql.responseType(headers.accept) : undefined;
    if (context.refusal || (!isLookup && !type)) return fallback(request, response, context);

    const forwardedFor = headers["x-forwarded-for"] ?? null;
    const origin = {
      ...context,
      forwardedFor: forwardedFor as string | null,
      pageOrigin: headers.origin,
      fetchSite: headers["sec-fetch-site"],
      fetchDestination: headers["sec-fetch-dest"],
    };
    const scope = new HttpRequestScope(needs, origin, context);
    const path = type ? graphqlUrl : lookupPath;
    const received = () => ({ method: method!, path, route: path, headers });
    const answer = type
      ? await scope.answer("graphql", received, () => answerOperation(request, type, scope))
      : await scope.answer("lookup", received, () => answerLookup(url.slice(lookupUrlPrefix.length), scope));
    if (typeof answer === "string") {
      const headers = Object.assign(scope.headers, JSON_HEADERS);
      if (type) headers["content-type"] = type;
      const length = Buffer.byteLength(answer);
      headers["content-length"] = String(length);
      await endOfTurn();
      // Node writes ASCII faster as latin1.
      response.writeHead(200, headers).end(answer, length === answer.length ? "latin1" : "utf8");
    } else {
      const isStream = answer.headers.get("content-type") === EVENT_STREAM;
      const text = isStream ? undefined : await answer.text();
      // Yoga writes `Content-Type`, which would not replace `content-type`.
      const headers: Record<string, string> = { ...JSON_HEADERS };
      for (const [name, value] of answer.headers) headers[name.toLowerCase()] = value;
      response.writeHead(answer.status, { ...headers, ...scope.headers });
      if (text === undefined) await pipeline(answer.body!, response);
      else response.end(text);
    }
  };
}

let turn: Promise<void> | undefined;

/**
 * Resolves at the end of this turn of the event loop, when all requests that have arrived are handled. Writing their
 * responses one after another takes less CPU time: between other work, each write would wake its reader.
 */
function endOfTurn(): Promise<void> {
  return (turn ??= new Promise((resolve) =>
    setImmediate(() => {
      turn = undefined;
      resolve();
    }),
  ));
}

/** Whether the body is JSON, not compressed and not too large. node:http reads no more than `Content-Length` says. */
function isPlainJson({ headers }: IncomingMessage): boolean {
  return (
    isJson(headers["content-type"]) &&
    headers["content-encoding"] === undefined &&
    Number(headers["content-length"]) <= MAX_BODY_BYTES
  );
}

function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const close = () => {
      if (request.complete) resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
      else reject(new Error("the caller disconnected before it sent the whole body"));
    };
    if (request.destroyed) close();
    // Emitted after the whole body, and when the caller disconnects.
    else request.once("close", close).on("data", (chunk: Buffer) => chunks.push(chunk));
  });
}

/** The parameters of a GET, as the members of a POST's body. A value that is not JSON becomes a string. */
function toParams(url: string): unknown {
  const given = new URLSearchParams(url.slice(url.indexOf("?") + 1));
  const fromJson = (text: string | null) => (text ? (parseJson(text) ?? text) : undefined);
  return {
    query: given.get("query"),
    variables: fromJson(given.get("variables")),
    operationName: given.get("operationName") || null,
    extensions: fromJson(given.get("extensions")),
  };
}

function toRequest({ method = "GET", url, headers }: IncomingMessage, body: Buffer | undefined): Request {
  return new Request(`http://${headers.host}${url}`, {
    method,
    headers: headers as Record<string, string>,
    ...(body && { body: new Uint8Array(body) }),
  });
}

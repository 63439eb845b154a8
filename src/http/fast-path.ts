import type { IncomingMessage, ServerResponse } from "node:http";
import { MAX_BODY_BYTES, respondGraphQLError } from "../graphql/errors.ts";
import type { GraphQLEndpoint } from "../graphql/endpoint.ts";
import type { LookUp } from "../rest/lookup.ts";
import { JSON_HEADERS } from "../rest/respond.ts";
import { HttpRequestScope, type RequestScopeNeeds } from "./request-scope.ts";
import { respondFailure } from "./router.ts";
import type { HandleNode } from "./server.ts";

/** Needs no decoding, and no other parameter follows. The lookup checks whether it is a handle. */
const PLAIN_VALUE = /^\w*$/;
const JSON_TYPES = ["application/json", "application/json; charset=utf-8"];
const ACCEPTED = [undefined, "*/*", "application/json"];

/**
 * Answers the two most frequent requests, a lookup and a cached GraphQL operation, directly on node:http:
 * without a Request, a Response or Yoga. It handles only their plainest form and passes everything else to
 * `otherwise`, which gives the same answers.
 */
export function createFastPath(
  needs: RequestScopeNeeds & {
    basePath: string;
    lookUp: LookUp;
    graphql: GraphQLEndpoint;
    otherwise: HandleNode;
  },
): HandleNode {
  const { lookUp, graphql, otherwise } = needs;
  const lookupStart = `${needs.basePath}/wallet/lookup?handle=`;
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
    scope: HttpRequestScope,
  ): Promise<string | Response> {
    try {
      await scope.admit(1);
      const body = await readBody(request);
      const cached = await graphql.answerCached(body.toString(), scope);
      return cached ?? (await graphql.answer(toRequest(request, body, scope.signal), scope));
    } catch (error) {
      if (scope.signal.aborted) return respondFailure(error, scope);
      const shown = scope.toCallerError(error);
      scope.recordCode(shown.code);
      return respondGraphQLError(shown);
    }
  }

  return async (request, response, context) => {
    const { method, url = "", headers } = request;
    const isLookup =
      method === "GET" && url.startsWith(lookupStart) && PLAIN_VALUE.test(url.slice(lookupStart.length));
    const isOperation = method === "POST" && url === graphqlUrl && isPlainJson(request);
    if (!isLookup && !isOperation) return otherwise(request, response, context);

    const forwardedFor = headers["x-forwarded-for"] ?? null;
    const origin = { ...context, forwardedFor: forwardedFor as string | null };
    const scope = new HttpRequestScope(needs, origin, new Connection(response));
    const answer = isLookup
      ? await scope.answer("lookup", () => answerLookup(url.slice(lookupStart.length), scope))
      : await scope.answer("graphql", () => answerOperation(request, scope));
    if (typeof answer === "string") {
      const headers = Object.assign(scope.headers, JSON_HEADERS);
      headers["content-length"] = String(Buffer.byteLength(answer));
      response.writeHead(200, headers).end(answer);
    } else {
      const text = await answer.text();
      // In lower case like ours; Yoga writes its headers in its own case.
      const headers: Record<string, string> = { ...JSON_HEADERS };
      for (const [name, value] of answer.headers) headers[name.toLowerCase()] = value;
      response.writeHead(answer.status, { ...headers, ...scope.headers });
      response.end(text);
    }
  };
}

/** A caller's connection. The signal aborts when it closes before the response is written. */
class Connection {
  readonly #response: ServerResponse;
  #signal: AbortSignal | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get signal(): AbortSignal {
    if (!this.#signal) {
      const disconnect = new AbortController();
      this.#signal = disconnect.signal;
      const abort = () => {
        if (!this.#response.writableFinished) disconnect.abort();
      };
      if (this.#response.destroyed) abort();
      else this.#response.once("close", abort);
    }
    return this.#signal;
  }
}

/** A JSON body whose length is declared and allowed; node:http enforces the declared length. */
function isPlainJson({ headers }: IncomingMessage): boolean {
  return (
    JSON_TYPES.includes(headers["content-type"] ?? "") &&
    ACCEPTED.includes(headers.accept) &&
    headers["content-encoding"] === undefined &&
    Number(headers["content-length"]) <= MAX_BODY_BYTES
  );
}

function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const end = () => {
      if (request.complete) resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
      else reject(new Error("the caller disconnected before the end of its body"));
    };
    if (request.destroyed) end();
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    // The first of them settles: a body that is cut off emits no `end`.
    request.once("end", end).once("close", end).once("error", end);
  });
}

function toRequest({ url, headers }: IncomingMessage, body: Buffer, signal: AbortSignal): Request {
  return new Request(`http://${headers.host}${url}`, {
    method: "POST",
    headers: headers as Record<string, string>,
    body: new Uint8Array(body),
    signal,
  });
}

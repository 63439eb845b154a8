import type { IncomingMessage, ServerResponse } from "node:http";
import { toCallerError } from "../contract/errors.ts";
import type { LookUp } from "../rest/lookup.ts";
import { JSON_HEADERS } from "../rest/respond.ts";
import { MAX_BODY_BYTES, respondGraphQLError } from "../graphql/errors.ts";
import type { GraphQLEndpoint } from "../graphql/endpoint.ts";
import { Call, type CallNeeds } from "./request-scope.ts";
import { explain } from "./router.ts";
import type { HandleNode } from "./server.ts";

/** Needs no decoding and has no other parameter after it; whether it is a handle, the lookup says. */
const PLAIN_VALUE = /^\w*$/;
const JSON_TYPES = ["application/json", "application/json; charset=utf-8"];
const ACCEPTED = [undefined, "*/*", "application/json"];

/**
 * Answers the two requests that come the most, a lookup and a GraphQL operation that has been run before,
 * straight from node:http: without a Request, a Response, or Yoga. It takes them only in their plainest
 * form, and leaves everything else to `otherwise`, which answers these the same.
 */
export function createFastPath(
  needs: CallNeeds & { basePath: string; lookUp: LookUp; graphql: GraphQLEndpoint; otherwise: HandleNode },
): HandleNode {
  const { lookUp, graphql, otherwise } = needs;
  const lookupStart = `${needs.basePath}/wallet/lookup?handle=`;
  const graphqlUrl = `${needs.basePath}/graphql`;

  async function answerLookup(handle: string, call: Call): Promise<string | Response> {
    try {
      await call.admit(1);
      return JSON.stringify(await lookUp(handle, call));
    } catch (error) {
      return explain(error, call);
    }
  }

  async function answerOperation(request: IncomingMessage, call: Call): Promise<string | Response> {
    try {
      await call.admit(1);
      const body = await readBody(request);
      const known = await graphql.answerKnown(body.toString(), call);
      return known ?? (await graphql.answer(toRequest(request, body, call.signal), call));
    } catch (error) {
      if (call.signal.aborted) return explain(error, call);
      const shown = toCallerError(error, call.log);
      call.note(shown.code);
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
    const call = new Call(needs, origin, new Waiting(response));
    const answer = isLookup
      ? await call.answer("lookup", () => answerLookup(url.slice(lookupStart.length), call))
      : await call.answer("graphql", () => answerOperation(request, call));
    if (typeof answer === "string") {
      const headers = Object.assign(call.headers, JSON_HEADERS);
      headers["content-length"] = String(Buffer.byteLength(answer));
      response.writeHead(200, headers).end(answer);
    } else {
      const text = await answer.text();
      // In lower case, as ours are: Yoga's come as it has written them.
      const headers: Record<string, string> = { ...JSON_HEADERS };
      for (const [name, value] of answer.headers) headers[name.toLowerCase()] = value;
      response.writeHead(answer.status, { ...headers, ...call.headers });
      response.end(text);
    }
  };
}

/** Whoever waits for an answer: until the connection closes before it is there. */
class Waiting {
  readonly #response: ServerResponse;
  #signal: AbortSignal | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get signal(): AbortSignal {
    if (!this.#signal) {
      const leaving = new AbortController();
      this.#signal = leaving.signal;
      const leave = () => {
        if (!this.#response.writableFinished) leaving.abort();
      };
      if (this.#response.destroyed) leave();
      else this.#response.once("close", leave);
    }
    return this.#signal;
  }
}

/** A body of a length that is told and allowed, which node:http holds it to. */
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
      else reject(new Error("the caller went away before the end of its body"));
    };
    if (request.destroyed) end();
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    // Whichever comes first: a body that is cut off has no end.
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

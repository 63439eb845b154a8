import { randomInt } from "node:crypto";
import { z } from "zod";
import { isOk, type CallUpstream, type UpstreamAnswer } from "../../upstream/http.ts";
import { parseJson } from "../../contract/parse-json.ts";
import { ownWordsOf, secretsIn } from "../../upstream/own-words.ts";
import { isRefusalCode, RpcError, toRpcError } from "./rpc-error.ts";
import { RPC_RESULTS, type RpcMethod, type RpcResult } from "./rpc-results.ts";

const ENVELOPE = z.object({
  id: z.unknown(),
  result: z.unknown().optional(),
  error: z
    .object({ code: z.int(), data: z.object({ contextSlot: z.int() }).nullish().catch(null) })
    .nullish(),
});
/**
 * Request ids start at a random number below this: two processes behind one proxy then hardly share
 * an id.
 */
const MAX_FIRST_ID = 2 ** 47;

/** One JSON-RPC endpoint. Only `host` may be shown: the rest of the URL may hold a key. */
export interface Endpoint {
  readonly url: string;
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The parts of the URL that nothing may show. */
  readonly secrets: readonly string[];
}

/** Makes one attempt of a call at one endpoint; rejects with an {@link RpcError}. */
export type Attempt<T> = (endpoint: Endpoint, signal: AbortSignal) => Promise<T>;

/**
 * Returns the endpoints of `urls`. A repeated URL counts once, because an endpoint cannot confirm
 * its own answers.
 */
export function toEndpoints(urls: readonly URL[]): Endpoint[] {
  return [...new Set(urls.map(({ href }) => href))].map(toEndpoint);
}

/** Moves a user and password into a header, so that no error quotes them with the URL. */
function toEndpoint(href: string): Endpoint {
  const url = new URL(href);
  const bare = new URL(href);
  bare.username = bare.password = "";
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (url.username || url.password) {
    const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.authorization = `Basic ${Buffer.from(credentials).toString("base64")}`;
  }
  return { url: bare.href, host: url.host, headers, secrets: secretsIn(url) };
}

/** Calls a JSON-RPC method at one endpoint. Throws {@link RpcError}. */
export type CallEndpoint = <M extends RpcMethod>(
  endpoint: Endpoint,
  method: M,
  params: unknown[],
  signal: AbortSignal,
) => Promise<RpcResult<M>>;

/**
 * Calls endpoints without checking their cluster, health or slot. `onCall` is called for each call.
 */
export function createCallEndpoint(needs: {
  callUpstream: CallUpstream;
  onCall?: (() => void) | undefined;
}): CallEndpoint {
  const { callUpstream, onCall } = needs;
  let lastId = randomInt(MAX_FIRST_ID);

  return async <M extends RpcMethod>(
    endpoint: Endpoint,
    method: M,
    params: unknown[],
    signal: AbortSignal,
  ): Promise<RpcResult<M>> => {
    const { url, host, headers, secrets } = endpoint;
    const id = ++lastId;
    const read = ({ status, headers: answerHeaders, text }: UpstreamAnswer): RpcResult<M> => {
      const words = () => ownWordsOf(text, secrets);
      // A status other than 2xx comes from a proxy, not from the node.
      if (!isOk(status)) {
        const retryAfterMs = Number(answerHeaders["retry-after"] ?? 0) * 1_000;
        throw new RpcError("status", method, host, { code: status, retryAfterMs, words: words() });
      }
      const envelope = ENVELOPE.safeParse(parseJson(text));
      if (!envelope.success) throw new RpcError("unreadable", method, host);
      const { id: answeredId, error } = envelope.data;
      // A node that cannot read a request does not know its id.
      if (answeredId !== id && !(error && (answeredId ?? null) === null))
        throw new RpcError("unreadable", method, host);
      // Keep little of a node's message: it may contain anything.
      if (error)
        throw new RpcError(isRefusalCode(method, error.code) ? "refused" : "error", method, host, {
          code: error.code,
          slot: error.data?.contextSlot,
          words: words(),
        });
      const result = RPC_RESULTS[method].safeParse(envelope.data.result);
      if (!result.success) throw new RpcError("unreadable", method, host, { cause: result.error });
      return result.data as RpcResult<M>;
    };
    onCall?.();
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    try {
      return await callUpstream({ upstream: "chain", method, url, headers, body, signal }, read);
    } catch (cause) {
      throw toRpcError(cause, method, host);
    }
  };
}

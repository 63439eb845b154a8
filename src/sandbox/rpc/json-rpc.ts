import { parseJson } from "../../contract/parse-json.ts";
import type { LoopbackAnswer } from "../loopback-server.ts";

/** An error for the caller, with the `code` and `data` that a real node sends. */
export class JsonRpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** Methods by name. Each gets the list of parameters. */
export type Methods = Readonly<Record<string, (params: unknown) => unknown>>;

/** One request. */
export interface JsonRpcCall {
  readonly id?: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** The call in a request body; without a method if there is none. Batches are not supported. */
export function parseJsonRpcCall(body: string): JsonRpcCall {
  return { method: "", params: [], ...(parseJson(body) as object) };
}

/** Runs the call in `body`. */
export function answerJsonRpc(body: string, methods: Methods): LoopbackAnswer {
  const call = parseJsonRpcCall(body);
  return {
    status: 200,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(
      { jsonrpc: "2.0", id: call.id ?? null, ...outcomeOf(call, methods) },
      // Lamports are bigints below 2^53 here.
      (_, value: unknown) => (typeof value === "bigint" ? Number(value) : value),
    ),
  };
}

function outcomeOf({ method, params }: JsonRpcCall, methods: Methods): object {
  try {
    if (!Object.hasOwn(methods, method)) throw new JsonRpcError(-32601, "Method not found");
    return { result: methods[method]!(params) ?? null };
  } catch (error) {
    const { code = -32603, message, data } = error as Partial<JsonRpcError>;
    return { error: { code, message, data } };
  }
}

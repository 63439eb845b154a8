import { z } from "zod";
import { parseJson } from "../../contract/parse-json.ts";
import { toError } from "../../observability/thrown.ts";

/** An error for the caller, with the `code` and `data` that a real node sends. */
export class JsonRpcError extends Error {
  override readonly name = "JsonRpcError";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The error for invalid parameters: -32602. */
export function invalidParams(message: string): JsonRpcError {
  return new JsonRpcError(-32602, message);
}

type Method = (params: unknown) => unknown;
export type Methods = Readonly<Record<string, Method>>;

/** A method that validates its parameters with `schema` and throws -32602 if they don't match. */
export function method<Params>(
  schema: z.ZodType<Params>,
  run: (params: Params) => unknown,
): Method {
  return (input) => {
    const params = schema.safeParse(input ?? []);
    if (params.success) return run(params.data);
    const problems = params.error.issues.map(
      ({ path, message }) => `${toPathText(path)}: ${message}`,
    );
    throw invalidParams(`Invalid params: ${problems.join("; ")}`);
  };
}

function toPathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => text + (typeof key === "number" ? `[${key}]` : `.${String(key)}`),
    "params",
  );
}

/** The method and the unvalidated parameters of one request. */
export interface JsonRpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

const requestSchema = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.number(), z.null()]),
  method: z.string(),
  params: z.unknown(),
});

/**
 * The call in a request body; undefined if the body is not a JSON-RPC request. Batches are not
 * supported.
 */
export function parseJsonRpcCall(body: string): JsonRpcCall | undefined {
  const { data } = requestSchema.safeParse(parseJson(body));
  return data && { method: data.method, params: Array.isArray(data.params) ? data.params : [] };
}

/** Runs the call in `body` and returns the response body. */
export function answerJsonRpc(body: string, methods: Methods): string {
  return JSON.stringify(
    answer(parseJson(body), methods),
    // Lamports are bigints below 2^53 here. `rentEpoch`, 2^64-1, is rounded, but no client reads
    // it.
    (_, value: unknown) => (typeof value === "bigint" ? Number(value) : value),
  );
}

function answer(request: unknown, methods: Methods): object {
  const { data } = requestSchema.safeParse(request);
  const id = data?.id ?? null;
  try {
    if (request === undefined) throw new JsonRpcError(-32700, "Parse error");
    if (!data) throw new JsonRpcError(-32600, "Invalid request");
    const run = Object.hasOwn(methods, data.method) ? methods[data.method] : undefined;
    if (!run) throw new JsonRpcError(-32601, "Method not found");
    return { jsonrpc: "2.0", result: run(data.params) ?? null, id };
  } catch (error) {
    const {
      code,
      message,
      data: details,
    } = error instanceof JsonRpcError ? error : new JsonRpcError(-32603, toError(error).message);
    return { jsonrpc: "2.0", error: { code, message, data: details }, id };
  }
}

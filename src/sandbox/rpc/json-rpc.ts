import { z } from "zod";
import { parseJson } from "../../contract/parse-json.ts";

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

/** A method that validates its parameters and throws -32602 if they don't match the schemas. */
export function method<Schemas extends readonly z.ZodType[]>(
  schemas: readonly [...Schemas],
  run: (...params: { [I in keyof Schemas]: z.output<Schemas[I]> }) => unknown,
): Method {
  const schema = z.tuple(schemas as unknown as [z.ZodType]);
  return (input) => {
    const params = schema.safeParse(input);
    if (!params.success) throw invalidParams(z.prettifyError(params.error));
    return run(...(params.data as unknown as { [I in keyof Schemas]: z.output<Schemas[I]> }));
  };
}

const callSchema = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.unknown(),
  method: z.string(),
  params: z.array(z.unknown()).default([]),
});

/** The method and the unvalidated parameters of one request. */
export interface JsonRpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/**
 * The call in a request body; undefined if the body is not a JSON-RPC request. Batches are not
 * supported.
 */
export function parseJsonRpcCall(body: string) {
  return callSchema.safeParse(parseJson(body)).data;
}

/** Runs the call in `body` and returns the response body. */
export function answerJsonRpc(body: string, methods: Methods): string {
  const call = parseJsonRpcCall(body);
  return JSON.stringify(
    { jsonrpc: "2.0", id: call?.id ?? null, ...outcomeOf(call, methods) },
    // Lamports are bigints below 2^53 here.
    (_, value: unknown) => (typeof value === "bigint" ? Number(value) : value),
  );
}

function outcomeOf(call: JsonRpcCall | undefined, methods: Methods): object {
  try {
    if (!call) throw new JsonRpcError(-32600, "Invalid request");
    const run = Object.hasOwn(methods, call.method) ? methods[call.method] : undefined;
    if (!run) throw new JsonRpcError(-32601, "Method not found");
    return { result: run(call.params) ?? null };
  } catch (error) {
    const { code = -32603, message, data } = error as Partial<JsonRpcError>;
    return { error: { code, message, data } };
  }
}

import { z } from "zod";

/** An error that a caller is told as it is. `code` and `data` are those of the real nodes. */
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

/** For what a schema can't tell of parameters. */
export function invalidParams(message: string): JsonRpcError {
  return new JsonRpcError(-32602, message);
}

export type Method = (params: unknown) => unknown;
export type Methods = Readonly<Record<string, Method>>;

/** A method whose parameters are checked first; what is wrong with them is told with -32602. */
export function method<Params>(schema: z.ZodType<Params>, run: (params: Params) => unknown): Method {
  return (given) => {
    const params = schema.safeParse(given ?? []);
    if (params.success) return run(params.data);
    const problems = params.error.issues.map(({ path, message }) => `${nameOf(path)}: ${message}`);
    throw invalidParams(`Invalid params: ${problems.join("; ")}`);
  };
}

function nameOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (name, key) => name + (typeof key === "number" ? `[${key}]` : `.${String(key)}`),
    "params",
  );
}

/** What one request asks for, as it came: for `calls` and for faults. */
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

/** The calls in a body: one, or those of a batch. What can't be read is left out. */
export function callsIn(body: string): JsonRpcCall[] {
  const parsed = parse(body);
  return (Array.isArray(parsed) ? parsed : [parsed]).flatMap((request: unknown) => {
    const { data } = requestSchema.safeParse(request);
    if (!data) return [];
    return [{ method: data.method, params: Array.isArray(data.params) ? data.params : [] }];
  });
}

/** Carries out the call in `body`, or each of a batch in turn. Returns the body of the answer. */
export function answerJsonRpc(body: string, methods: Methods): string {
  const parsed = parse(body);
  const batch = Array.isArray(parsed) && parsed.length > 0;
  return JSON.stringify(
    batch ? parsed.map((request) => answerOne(request, methods)) : answerOne(parsed, methods),
    // Amounts are bigints; those of the sandbox are far below 2^53.
    (_, value: unknown) => (typeof value === "bigint" ? Number(value) : value),
  );
}

/** Undefined for a body that is no JSON. */
function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function answerOne(request: unknown, methods: Methods): object {
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
    } = error instanceof JsonRpcError ? error : new JsonRpcError(-32603, (error as Error).message);
    return { jsonrpc: "2.0", error: { code, message, data: details }, id };
  }
}

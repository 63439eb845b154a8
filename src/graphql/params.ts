import type { HttpRequest } from "../contract/http-messages.ts";
import { encodingOf, parseJson, parseJsonBody, isObject } from "../contract/parse-json.ts";
import { MAX_WALLETS } from "../schema/field-costs.ts";
import { badRequest } from "./errors.ts";

const MAX_BODY_BYTES = 100_000;
/**
 * The most values in `variables`, at all depths. A hundred entries to collect, with a coin each,
 * have 401.
 */
const MAX_VALUES = 1_000;
/** The most members of an object in `variables`. `CollectInput` has two. */
const MAX_MEMBERS = 5;

/**
 * Reads the parameters from the URL or the body. A body may be an array. Fails with GraphQLError
 * BAD_REQUEST.
 */
export function readParams(request: HttpRequest): object | Promise<object> {
  const { method, query } = request;
  if (method === "GET") return withinLimits(toParams(new URLSearchParams(query)));
  return readBodyParams(request);
}

async function readBodyParams({ headers, readBody }: HttpRequest): Promise<object> {
  const body = await readBody(MAX_BODY_BYTES);
  if (body === "too large")
    throw badRequest(`The body is too large: the maximum is ${MAX_BODY_BYTES} bytes.`, {
      status: 413,
    });
  const value = parseJsonBody(body);
  if (typeof value === "object" && value !== null) return withinLimits(withoutEmptyName(value));
  const encoding = encodingOf(body, headers["content-encoding"]);
  const receivedEncoding = encoding ? ` Received ${encoding}.` : "";
  throw badRequest(
    `The body must be a JSON object, in UTF-8 and not compressed.${receivedEncoding}`,
  );
}

/** An empty name of an operation counts as absent, as in a GET. */
function withoutEmptyName<T extends { readonly operationName?: unknown }>(params: T): T {
  return params.operationName === "" ? { ...params, operationName: undefined } : params;
}

/**
 * Limits `variables`. Invalid ones could take seconds, because GraphQL prints an object once per
 * unknown member.
 */
function withinLimits(params: { readonly variables?: unknown }): object {
  const { variables } = params;
  const values = [variables];
  for (const value of values) {
    // GraphQL takes a number for an ID: `node` would return another account's wallet.
    if (Number.isInteger(value) && !Number.isSafeInteger(value))
      throw badRequest(
        "A number in `variables` is so large that it has lost digits. Send ids as strings.",
      );
    if (typeof value !== "object" || value === null) continue;
    const members: unknown[] = Object.values(value);
    if (members.length > MAX_MEMBERS && value !== variables && !Array.isArray(value))
      throw badRequest(
        `Too many members of an object in \`variables\`: ${members.length} given, the maximum is ${MAX_MEMBERS}.`,
      );
    if (values.length + members.length > 1 + MAX_VALUES)
      throw badRequest(
        `Too many values in \`variables\`: the maximum is ${MAX_VALUES}.${hintFor(value)}`,
      );
    values.push(...members);
  }
  return params;
}

/** For callers whose list of handles or ids is too long. */
function hintFor(value: unknown): string {
  const isTextList = Array.isArray(value) && typeof value[0] === "string";
  return isTextList
    ? ` A request takes at most ${MAX_WALLETS} wallets: ten requests take 1,000 handles.`
    : "";
}

/** The parameters of a GET, as the members of a POST's body. Empty parameters count as absent. */
function toParams(query: URLSearchParams): object {
  const textOf = (name: string) => query.get(name) || undefined;
  const valueOf = (name: string) => {
    const text = textOf(name);
    const value = text === undefined ? undefined : parseJson(text);
    if (text !== undefined && value === undefined)
      throw badRequest("`variables` and `extensions` must be JSON.");
    return value;
  };
  return {
    query: textOf("query"),
    operationName: textOf("operationName"),
    variables: valueOf("variables"),
    extensions: valueOf("extensions"),
  };
}

const PARAM_NAMES = new Set(["query", "variables", "operationName", "extensions"]);

/** The parameters of a valid request. */
export interface Params {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | null;
  readonly operationName?: string | null;
}

/**
 * Whether `params` has the types of {@link Params}, and no other members except an object
 * `extensions`.
 */
export function areParams(params: object): params is Params {
  if (!isObject(params)) return false;
  for (const name in params) if (!PARAM_NAMES.has(name)) return false;
  const { query, variables, operationName = null, extensions } = params;
  return (
    typeof query === "string" &&
    isObjectOrAbsent(variables) &&
    isObjectOrAbsent(extensions) &&
    (operationName === null || (typeof operationName === "string" && /^\w+$/.test(operationName)))
  );
}

function isObjectOrAbsent(value: unknown): boolean {
  return value === undefined || (typeof value === "object" && !Array.isArray(value));
}

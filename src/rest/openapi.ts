import { readFileSync } from "node:fs";
import { ContractError, errorWithPath, quote } from "../contract/contract-error.ts";
import { codesOf, type ContractOperation, type ErrorCode } from "../contract/error-codes.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { toErrorBody } from "../contract/http-messages.ts";
import { invalidMinimum } from "../contract/minimum.ts";
import { invalidMint } from "../contract/mint.ts";
import { invalidSocialId } from "../contract/social-id.ts";
import { VERSION } from "../observability/version.ts";
import { wrongCount } from "./wallets.ts";
import { bodyTooLarge, MAX_BODY_BYTES, toCollectErrorBody } from "./collect.ts";

/** The parts of an OpenAPI 3.1 document that the service reads. Each path has one method. */
export interface OpenApiDocument {
  readonly info: { readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, RestOperation>>>>;
  readonly components: { readonly schemas: Record<string, ErrorSchema> };
}

export interface RestOperation {
  readonly summary: string;
  readonly parameters?: readonly { name: string; example: string | readonly string[] }[];
  readonly requestBody?: {
    readonly content: { readonly "application/json": { readonly example: object } };
  };
  readonly responses: Record<string, RestResponse>;
}

/** The part of a schema of errors that depends on the operation. */
interface ErrorSchema {
  readonly properties: Readonly<Record<string, object>>;
}

/** A response that is a reference has no `content`. */
interface RestResponse {
  readonly description: string;
  readonly headers: object;
  readonly content?: {
    readonly "application/json": JsonContent;
  };
}

interface JsonContent {
  readonly schema: { readonly $ref?: string; readonly [member: string]: unknown };
  readonly examples: Readonly<Record<string, { readonly value: { readonly error?: string } }>>;
}

const TEMPLATE = readFileSync(new URL("openapi.template.json", import.meta.url), "utf8");

const ERROR_DESCRIPTION = "The stable code of the error, for programs.";

/** Only the sandbox has these routes. */
const SANDBOX = `

This is a sandbox. \`POST /sandbox/fees\` with \`{"socialId":"1523400000000000123","source":"VAULT","lamports":"250000000"}\` adds fees; \`source\` can also be CURVE, POOL or SHARED, and without \`lamports\` the amount is random. From the sandbox's own machine, \`POST /sandbox/faults\` with \`{"upstream":"chain","fault":"hang","seconds":30}\` makes the chain or the network (\`network\`) \`fail\`, \`hang\`, \`throttle\` or be \`slow\`, for at most 300 seconds; \`{"seconds":0}\` ends it.`;

const headerRef = (name: string) => ({ [name]: { $ref: `#/components/headers/${name}` } });
const COUNTED = {
  ...headerRef("X-Request-Id"),
  ...headerRef("RateLimit"),
  ...headerRef("RateLimit-Policy"),
};

/** The value of the header `Link` that leads to the OpenAPI document. */
export function descriptionLink(basePath: string): string {
  return `<${basePath}/openapi.json>; rel="service-desc"`;
}

/**
 * Fills in the settings (`${name}`) of `openapi.template.json`. Adds each endpoint's errors from
 * the table of error codes. The URL of the server is relative: {@link withServer} replaces it.
 */
export function createOpenApiDocument(needs: {
  basePath: string;
  isOpenToAllPages: boolean;
  rateLimit: { max: number; windowSeconds: number };
  collectTimeoutMs: number;
  handleFormat: HandleFormat;
  rateLimited: ContractError;
  isSandbox?: boolean;
}): OpenApiDocument {
  const { basePath, rateLimit, handleFormat } = needs;
  const settings: Readonly<Record<string, string | number>> = {
    version: VERSION,
    server: basePath || "/",
    link: descriptionLink(basePath),
    notFound: errorWithPath("NOT_FOUND", basePath).message,
    callers: needs.isOpenToAllPages
      ? "any web page may call it"
      : "only web pages of the origins that its operator lists may call it",
    max: rateLimit.max,
    left: rateLimit.max - 1,
    seconds: rateLimit.windowSeconds,
    collectSeconds: Math.ceil(needs.collectTimeoutMs / 1000),
    handle: handleFormat.expected,
    handlePattern: handleFormat.pattern.source,
    maxBodyBytes: MAX_BODY_BYTES,
    sandbox: needs.isSandbox ? SANDBOX : "",
  };
  const text = TEMPLATE.replaceAll(/\$\{(\w+)\}/g, (_, name: string) =>
    JSON.stringify(String(settings[name])).slice(1, -1),
  );
  const document = JSON.parse(text) as OpenApiDocument;

  function operationAt(path: string, method: "get" | "post") {
    const operation = document.paths[path]?.[method];
    if (!operation) throw new Error(`the template has no ${method} ${path}`);
    return operation;
  }

  addErrors(
    document,
    operationAt("/wallet/lookup", "get"),
    "lookup",
    { schema: "LookupError", like: "ErrorBody", toBody: toErrorBody },
    [
      errorWithPath("HANDLE_REQUIRED", basePath),
      invalidHandle(handleFormat, quote("@creator")),
      invalidMint("nonsense"),
      new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds: 300 }),
      new ContractError("SOCIAL_API_UNAVAILABLE"),
      new ContractError("SOCIAL_API_UNAVAILABLE", {
        message: "The social network is temporarily unavailable. Try again in 30 seconds.",
        retryAfterSeconds: 30,
      }),
      needs.rateLimited,
    ],
  );
  addErrors(
    document,
    operationAt("/wallets", "get"),
    "wallets",
    { schema: "WalletsError", like: "ErrorBody", toBody: toErrorBody },
    [wrongCount(0), invalidMint("nonsense"), needs.rateLimited],
  );
  addErrors(
    document,
    operationAt("/collect", "post"),
    "collect",
    { schema: "CollectError", like: "CollectError", toBody: toCollectErrorBody },
    [
      invalidSocialId("creator"),
      bodyTooLarge(),
      invalidMint("nonsense"),
      invalidMinimum("0,5"),
      new ContractError("COLLECT_FAILED", {
        message: "The service has used its fee budget for now. Try again in 312 seconds.",
        retryAfterSeconds: 312,
        extensions: { scope: "SERVICE" },
      }),
      new ContractError("COLLECT_FAILED", { retryAfterSeconds: 60 }),
      needs.rateLimited,
    ],
  );
  return document;
}

export function withServer(document: OpenApiDocument, url: string): OpenApiDocument {
  return { ...document, servers: [{ url }] };
}

/**
 * Adds an operation's errors to its responses. Codes without an example use their default message.
 */
function addErrors(
  { components: { schemas } }: OpenApiDocument,
  { responses }: RestOperation,
  operation: ContractOperation,
  failure: {
    readonly schema: string;
    /** The schema with all codes. */
    readonly like: string;
    readonly toBody: (error: ContractError) => object;
  },
  examples: readonly ContractError[],
): void {
  // The template describes NOTHING_TO_COLLECT, which has more members than other errors.
  const describedCodes = Object.values(responses).flatMap(({ content }) =>
    content ? Object.keys(content["application/json"].examples) : [],
  );
  const codes = codesOf(operation);
  const others = codes
    .filter(
      (code) =>
        !describedCodes.includes(code) && !examples.some((example) => example.code === code),
    )
    .map((code) => new ContractError(code));
  const { properties, ...rest } = schemas[failure.like]!;
  const ownCodes = codes.filter((code) => !describedCodes.includes(code));
  const error = { type: "string", description: ERROR_DESCRIPTION, enum: ownCodes };
  schemas[failure.schema] = { ...rest, properties: { ...properties, error } };
  const schema = { $ref: `#/components/schemas/${failure.schema}` };
  for (const [status, errors] of Map.groupBy([...examples, ...others], (error) => error.status)) {
    const answer = responses[status];
    const content = answer?.content?.["application/json"];
    const bodies = errors.map((error): [string, { value: object }] => [
      error.code,
      { value: failure.toBody(error) },
    ]);
    // Descriptions are Markdown, in which `<name>` would be an HTML element.
    const lines = errors.map(
      ({ code, message }) => `\`${code}\`: ${message.replaceAll("<", "\\<")}`,
    );
    responses[status] = {
      description: [...(answer ? [answer.description] : []), ...lines].join("\n\n"),
      headers: { ...COUNTED, ...headerRef("Link"), ...retryAfter(errors) },
      content: {
        "application/json": {
          schema: content ? oneOf(content, schema, codes) : schema,
          examples: { ...content?.examples, ...Object.fromEntries(bodies) },
        },
      },
    };
  }
}

/**
 * Either of two failures. The discriminator lets generated clients tell them apart by their codes.
 * openapi-typescript makes of it the type of `error`.
 */
function oneOf(
  { schema, examples }: JsonContent,
  other: JsonContent["schema"],
  codes: readonly ErrorCode[],
): JsonContent["schema"] {
  const describedCodes = Object.values(examples).map(({ value }) => value.error);
  const mapping: Record<string, string | undefined> = {};
  for (const code of codes)
    mapping[code] = describedCodes.includes(code) ? schema.$ref : other.$ref;
  return { oneOf: [schema, other], discriminator: { propertyName: "error", mapping } };
}

function retryAfter(errors: readonly ContractError[]): object {
  const delayedErrors = errors.filter(({ retryAfterSeconds }) => retryAfterSeconds !== undefined);
  const [first] = delayedErrors;
  if (!first) return {};
  return {
    "Retry-After": {
      description: `Seconds to wait before you try again; sent with ${delayedErrors.map(({ code }) => `\`${code}\``).join(" and ")}.`,
      required: delayedErrors.length === errors.length,
      schema: { type: "integer", minimum: 1 },
      example: first.retryAfterSeconds,
    },
  };
}

import { readFileSync } from "node:fs";
import type { HandleFormat } from "../../contract/handle.ts";
import { VERSION } from "../../observability/version.ts";

/** The parts of an OpenAPI 3.1 document that the service reads. Each path has one method. */
export interface OpenApiDocument {
  readonly info: { readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, RestOperation>>>>;
}

export interface RestOperation {
  readonly summary: string;
  readonly parameters?: readonly { name: string; example: string | readonly string[] }[];
  readonly requestBody?: {
    readonly content: { readonly "application/json": { readonly example: object } };
  };
  /** A response that is a reference has no `content`. */
  readonly responses: Readonly<Record<string, { readonly content?: JsonContent }>>;
}

interface JsonContent {
  readonly "application/json": {
    readonly examples: Readonly<Record<string, { readonly value: object }>>;
  };
}

const TEMPLATE = readFileSync(new URL("openapi.template.json", import.meta.url), "utf8");

/** Only the sandbox has these routes. */
const SANDBOX = `

This is a sandbox. \`POST /sandbox/fees\` with \`{"socialId":"1523400000000000123","source":"VAULT","lamports":"250000000"}\` adds fees; \`source\` can also be CURVE, POOL or SHARED, and without \`lamports\` the amount is 0.25 SOL. From the sandbox's own machine, \`POST /sandbox/faults\` with \`{"upstream":"chain","fault":"hang","seconds":30}\` makes the chain or the network (\`network\`) \`fail\`, \`hang\` or \`throttle\`, for at most 300 seconds; \`{"seconds":0}\` ends it.`;

/** The value of the header `Link` that leads to the OpenAPI document. */
export function descriptionLink(basePath: string): string {
  return `<${basePath}/openapi.json>; rel="service-desc"`;
}

/**
 * Fills in the settings (`${name}`) of `openapi.template.json`. The URL of the server is relative:
 * {@link withServer} replaces it.
 */
export function createOpenApiDocument(needs: {
  basePath: string;
  isOpenToAllPages: boolean;
  rateLimitMax: number;
  collectTimeoutMs: number;
  handleFormat: HandleFormat;
  isSandbox?: boolean;
}): OpenApiDocument {
  const { basePath, rateLimitMax, handleFormat } = needs;
  const settings: Readonly<Record<string, string | number>> = {
    version: VERSION,
    basePath,
    server: basePath || "/",
    callers: needs.isOpenToAllPages
      ? "any web page may call it"
      : "only web pages of the origins that its operator lists may call it",
    max: rateLimitMax,
    left: rateLimitMax - 1,
    collectSeconds: Math.ceil(needs.collectTimeoutMs / 1000),
    handle: handleFormat.expected,
    handlePattern: handleFormat.pattern.source,
    sandbox: needs.isSandbox ? SANDBOX : "",
  };
  const text = TEMPLATE.replaceAll(/\$\{(\w+)\}/g, (_, name: string) =>
    JSON.stringify(String(settings[name])).slice(1, -1),
  );
  return JSON.parse(text) as OpenApiDocument;
}

export function withServer(document: OpenApiDocument, url: string): OpenApiDocument {
  return { ...document, servers: [{ url }] };
}

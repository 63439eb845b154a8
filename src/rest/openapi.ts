import type { GraphQLSchema } from "graphql";
import { ContractError } from "../contract/contract-error.ts";
import { codesOf, ERROR_CODES } from "../contract/error-codes.ts";
import { VERSION } from "../observability/version.ts";
import { BATCHING } from "../schema/field-metadata.ts";
import { allowHeader, type EndpointDescription, type EndpointAnswer } from "./endpoint-description.ts";
import { toErrorBody } from "./respond.ts";
import { resultSchema, schemaRef } from "./result-schema.ts";

/** The rate limit, as the document describes it. */
export interface RateLimitDescription {
  readonly max: number;
  readonly windowSeconds: number;
  /** The headers of responses to requests that count against the limit: a JSON Schema and an example each. */
  readonly headers: Readonly<Record<string, { description: string; schema: object; example: string }>>;
  /** An example of a RATE_LIMITED error. */
  readonly refusal: ContractError;
}

/** Other descriptions of the service repeat `description`: paragraphs of Markdown. */
interface OpenApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly [member: string]: unknown;
}

interface OpenApiNeeds {
  readonly schema: GraphQLSchema;
  readonly basePath: string;
  /** Whether pages of any origin may call the API. */
  readonly isOpenToAllPages: boolean;
  readonly rateLimit: RateLimitDescription;
  readonly endpoints: readonly EndpointDescription[];
}

const PLAIN_ERROR: NonNullable<EndpointDescription["failure"]> = { name: "Error", members: {} };

const headerRef = (name: string) => ({ [name]: { $ref: `#/components/headers/${name}` } });
const REQUEST_ID = headerRef("X-Request-Id");

/** The value of the header `Link` that leads to the OpenAPI document. */
export function descriptionLink(basePath: string): string {
  return `<${basePath}/openapi.json>; rel="service-desc"`;
}

/** The OpenAPI 3.1 document of the REST endpoints, generated from the schema and the table of error codes. */
export function createOpenApiDocument(needs: OpenApiNeeds): OpenApiDocument {
  const { schema, basePath, isOpenToAllPages, rateLimit, endpoints } = needs;
  const { max, windowSeconds, headers } = rateLimit;
  const notFound = new ContractError("NOT_FOUND");
  const paths = endpoints.map((endpoint): [string, object] => [
    endpoint.path,
    { [endpoint.method.toLowerCase()]: toOperation(rateLimit, endpoint) },
  ]);
  return {
    openapi: "3.1.1",
    info: {
      title: "Tributary",
      version: VERSION,
      description: [
        "Look up the address and balance of a social-network handle, and collect its trading fees.",
        isOpenToAllPages
          ? "The API is public: no keys, no login, and any web page may call it."
          : "The API is public: no keys, no login. Only web pages of the origins that its operator lists may call it.",
        `Rate limit: ${max} requests in ${windowSeconds} seconds from one IP address, for both endpoints and GraphQL together. The headers \`RateLimit\` and \`RateLimit-Policy\` show what is left. ${BATCHING}`,
        "Amounts are decimal strings in SOL with 4 digits after the point, truncated, never rounded up.",
        "Errors are JSON: `error` is a stable code for programs, `message` explains it to people and may change. `Retry-After`, if present, is in seconds.",
        `An unknown path returns ${notFound.status} \`${notFound.code}\`.`,
      ].join("\n\n"),
    },
    servers: [{ url: basePath || "/" }],
    security: [],
    paths: Object.fromEntries(paths),
    components: {
      schemas: toSchemas(schema, endpoints),
      responses: { NotFound: toResponse([], [notFound], REQUEST_ID) },
      headers: {
        "X-Request-Id": {
          description: "Identifies this request in the service's log. Include it when you report a problem.",
          required: true,
          schema: { type: "string", format: "uuid" },
          example: "6f1c1a52-8d0e-4d4b-9a54-0f8d6f0f2b7e",
        },
        Link: {
          description: "Leads to this document.",
          required: true,
          schema: { type: "string" },
          example: descriptionLink(basePath),
        },
        ...Object.fromEntries(
          Object.entries(headers).map(([name, header]) => [name, { required: true, ...header }]),
        ),
      },
    },
  };
}

/** The schemas of all bodies, by name: of answers, of the objects in them, and of errors. */
function toSchemas(schema: GraphQLSchema, endpoints: readonly EndpointDescription[]): Record<string, object> {
  const schemas: Record<string, object> = {};
  for (const { graphqlOperation, answers } of endpoints) {
    for (const { name, members, fixed = {}, withMints, ifKnown } of answers) {
      const result = resultSchema(schema, graphqlOperation, { members, schemas });
      const properties = Object.entries(result.properties).map(([property, value]): [string, object] => [
        property,
        // `const` replaces `enum`.
        property in fixed ? { ...value, enum: undefined, const: fixed[property] } : value,
      ]);
      const optional = [withMints?.member, ifKnown?.member];
      const required = result.required.filter((property) => !optional.includes(property));
      schemas[name] = { ...result, required, properties: Object.fromEntries(properties) };
    }
  }
  const answered = endpoints.flatMap(({ answers }) => answers.map(({ fixed }) => fixed?.error));
  const error = {
    error: {
      type: "string",
      // Without the codes of answers, so that a body never matches two schemas of a response.
      enum: Object.keys(ERROR_CODES).filter((code) => !answered.includes(code)),
      description: "The stable code, for programs. Each response lists its codes.",
    },
    message: { type: "string", description: "What went wrong and what to do, for people." },
  };
  for (const { name, members } of [PLAIN_ERROR, ...endpoints.flatMap(({ failure = [] }) => failure)]) {
    const fixed = Object.entries(members).map(([member, value]) => [
      member,
      { type: typeof value, const: value, description: "Always, for an error." },
    ]);
    const properties = { ...(Object.fromEntries(fixed) as Record<string, object>), ...error };
    schemas[name] = { type: "object", required: Object.keys(properties), properties };
  }
  return schemas;
}

function toOperation(rateLimit: RateLimitDescription, endpoint: EndpointDescription): object {
  const { method, operationId, summary, description, request, answers, failure } = endpoint;
  const errors = errorsOf(endpoint, rateLimit);
  const statuses = [...new Set([...answers, ...errors].map(({ status }) => status))];
  const allow = allowHeader({ [method]: true });
  const originRefused = new ContractError("ORIGIN_NOT_ALLOWED");
  const notAllowed = new ContractError("METHOD_NOT_ALLOWED");
  const rateLimitHeaders = Object.keys(rateLimit.headers).map(headerRef);
  return {
    operationId,
    summary,
    description,
    ...request,
    responses: {
      ...Object.fromEntries(
        statuses.map((wanted): [number, object] => [
          wanted,
          toResponse(
            answers.filter(({ status }) => status === wanted),
            errors.filter(({ status }) => status === wanted),
            Object.assign({}, REQUEST_ID, ...rateLimitHeaders) as object,
            failure,
          ),
        ]),
      ),
      [originRefused.status]: toResponse([], [originRefused], REQUEST_ID),
      [notAllowed.status]: toResponse([], [notAllowed], {
        ...REQUEST_ID,
        Allow: {
          description: "The allowed methods.",
          required: true,
          schema: { type: "string", const: allow },
          example: allow,
        },
      }),
    },
  };
}

/** The endpoint's errors: its examples, or the table's row for codes without one. Leaves out the codes that `answers` have. */
function errorsOf(endpoint: EndpointDescription, rateLimit: RateLimitDescription): ContractError[] {
  const examples = [...endpoint.errorExamples, rateLimit.refusal];
  const answered = endpoint.answers.map(({ fixed }) => fixed?.error);
  return codesOf(endpoint.contractOperation)
    .filter((code) => !answered.includes(code))
    .flatMap((code) => {
      const own = examples.filter((example) => example.code === code);
      return own.length > 0 ? own : [new ContractError(code)];
    });
}

/** The response of one status: all answers and errors that share it. */
function toResponse(
  answers: readonly EndpointAnswer[],
  errors: readonly ContractError[],
  headers: object,
  failure = PLAIN_ERROR,
): object {
  const schemas = [...answers.map(({ name }) => name), ...(errors.length > 0 ? [failure.name] : [])].map(
    schemaRef,
  );
  const examples = [
    ...answers.flatMap(({ fixed, example, withMints, ifKnown }): [string, object][] => {
      const name = String(fixed?.error ?? "OK");
      const examples: [string, object][] = [[name, { value: example }]];
      for (const { member, example } of [withMints ?? [], ifKnown ?? []].flat())
        examples.push([`${name}_with_${member}`, { value: example }]);
      return examples;
    }),
    ...errors.map((error): [string, object] => [error.code, { value: toErrorBody(error, failure.members) }]),
  ];
  return {
    description: [
      ...answers.map(({ fixed, description }) =>
        fixed?.error ? `\`${fixed.error}\`: ${description}` : description,
      ),
      ...errors.map(({ code, message }) => `\`${code}\`: ${toMarkdown(message)}`),
    ].join("\n\n"),
    headers: { ...headers, ...(errors.length > 0 && headerRef("Link")), ...toRetryAfter(errors) },
    content: {
      "application/json": {
        schema: schemas.length === 1 ? schemas[0] : { oneOf: schemas },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

/** Descriptions are Markdown, in which `<name>` would be an HTML element. */
function toMarkdown(text: string): string {
  return text.replaceAll("<", "\\<");
}

function toRetryAfter(errors: readonly ContractError[]): object {
  const withDelay = errors.filter(({ retryAfterSeconds }) => retryAfterSeconds !== undefined);
  if (withDelay.length === 0) return {};
  return {
    "Retry-After": {
      description: `Seconds to wait before you try again; sent with ${withDelay.map(({ code }) => `\`${code}\``).join(" and ")}.`,
      required: withDelay.length === errors.length,
      schema: { type: "integer", minimum: 1 },
      example: withDelay[0]!.retryAfterSeconds,
    },
  };
}

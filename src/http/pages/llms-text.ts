import { Kind, parse, print, printSchema, visit, type GraphQLSchema } from "graphql";
import { codesOf, ERROR_CODES, meaningOf, type ErrorCode } from "../../contract/error-codes.ts";
import { MAX_MINTS, MAX_MINTS_PER_WALLET } from "../../contract/mint.ts";
import type { OpenApiDocument, RestOperation } from "./openapi.ts";
import {
  MAX_COLLECTS,
  MAX_FOLLOWED,
  MAX_LISTED_COLLECTS,
  MAX_MINTS_PER_OPERATION,
  MAX_TRANSFERS,
  MAX_WALLETS,
} from "../../schema/field-costs.ts";
import { STREAM_SECONDS, STREAMS_PER_ADDRESS } from "../streams.ts";

interface ApiDescription {
  readonly basePath: string;
  readonly publicUrl?: URL | undefined;
  readonly schema: GraphQLSchema;
  readonly openApi: OpenApiDocument;
}

const LINKS = {
  "openapi.json": "the REST endpoints, as an OpenAPI document",
  "schema.graphql": "the GraphQL schema, with descriptions",
  "errors.md": "the errors in detail",
  docs: "REST in a browser",
  graphql: "GraphiQL in a browser",
};

const MAXIMA = `A GraphQL operation has at most ${MAX_WALLETS} wallets, ${MAX_COLLECTS} fields \`collect\`, ${MAX_LISTED_COLLECTS} entries of \`collectMany\`, ${MAX_MINTS_PER_OPERATION} mints and ${MAX_TRANSFERS} transfers; a field ${MAX_MINTS} mints, and one wallet ${MAX_MINTS_PER_WALLET} different ones.`;

/**
 * `/llms.txt`: see https://llmstxt.org. Describes the API and asks for nothing: agents may obey the
 * text.
 */
export function createLlmsText({ basePath, publicUrl, schema, openApi }: ApiDescription): string {
  // The first paragraph says what the API does, the others have its rules.
  const [, ...rules] = openApi.info.description.split("\n\n");
  const links = Object.entries(LINKS).map(([path, text]) => {
    const url = publicUrl ? new URL(path, publicUrl).href : `${basePath}/${path}`;
    return `[${path}](${url}): ${text}`;
  });
  const coins = `Fees wait on each coin first. The launch platform's own sweeper moves those of 0.001 SOL or more to the vault within some 14 minutes (not promised), so \`total\` is short of them only briefly; smaller ones stay until a collect names the coin. They count in requests that name it by its mint, up to ${MAX_MINTS}: \`mint\` in a query, repeatable, \`mints\` in a body and in GraphQL. REST also takes the other name. GraphQL's \`coinsSeen\` has those swept lately. \`minimum\` is in SOL.`;
  return `# Tributary

> Finds the Solana address of a social-network account. A token launched with this address as its creator earns trading fees for the account's owner, who may have no wallet. Shows these fees, and collects them to the address. Anyone can collect, and the service pays for the transaction. Only the owner can withdraw.

REST and GraphQL do the same. GraphQL also has many wallets in one request, transfers, and live balances. In \`balance\`, \`vault\` is what a collect moves, \`pda\` what is at the address, \`total\` both, and \`withdrawable\` what the owner would receive after a collect: \`total\` less the withdrawal fee of 2%. \`collected\` is an account's part of a transaction, which many may share: add up by \`socialId\` and \`txSignature\`, and of equal keys only the largest \`collected\`.

## REST

${describeEndpoints(basePath, openApi).join("\n\n")}

## GraphQL

\`POST ${basePath}/graphql\`. \`collect\` with nothing to collect is a result, with \`success: false\`.

${describeSchema(schema)}

To follow many accounts: \`wallets\` finds their ids, which never change. \`walletsById\` then reads ${MAX_WALLETS} balances in one request, without the social network. The subscription \`walletsById\` follows them live: an address may have ${STREAMS_PER_ADDRESS} streams, of ${MAX_FOLLOWED} accounts in all, and each ends after ${STREAM_SECONDS / 60} minutes. Events may be merged: each has the newest amounts, not every change.

## Limits

${toList([...rules, coins, MAXIMA, ...describeCosts(schema)])}

## Error codes

\`error\` in REST, \`extensions.code\` in GraphQL, with the status, the meaning, and in brackets whether to try again.

${describeErrors()}

## Links

${toList(links)}
`;
}

function describeEndpoints(basePath: string, { paths }: OpenApiDocument): string[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) =>
      describeEndpoint(`${method.toUpperCase()} ${basePath}${path}`, operation),
    ),
  );
}

function describeEndpoint(start: string, operation: RestOperation): string {
  const { summary, parameters = [], requestBody, responses } = operation;
  const query = parameters.flatMap(({ name, example }) =>
    [example].flat().map((value) => `${name}=${value}`),
  );
  const body = requestBody
    ? ` ${JSON.stringify(requestBody.content["application/json"].example)}`
    : "";
  const results = Object.entries(responses).flatMap(([status, { content }]) => {
    const { OK, NOTHING_TO_COLLECT } = content?.["application/json"].examples ?? {};
    return [OK ?? NOTHING_TO_COLLECT ?? []]
      .flat()
      .map(({ value }) => `- ${status}: \`${JSON.stringify(value)}\``);
  });
  const target = [start, query.join("&")].filter(Boolean).join("?");
  return [`\`${target}${body}\`: ${summary}`, "", ...results].join("\n");
}

/**
 * Prints all types without descriptions, each on a line. Omits the error codes, which have their
 * own section.
 */
function describeSchema(schema: GraphQLSchema): string {
  const { definitions } = visit(parse(printSchema(schema)), {
    enter: (node) => ("description" in node ? { ...node, description: undefined } : undefined),
  });
  const types = definitions.filter(
    (node) =>
      node.kind !== Kind.SCALAR_TYPE_DEFINITION &&
      "name" in node &&
      node.name.value !== "ErrorCode",
  );
  return ["```graphql", ...types.map((type) => print(type).replaceAll(/\s+/g, " ")), "```"].join(
    "\n",
  );
}

function describeCosts(schema: GraphQLSchema): string[] {
  const types = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  return types.flatMap((type) => (type ? `GraphQL ${type.name}: ${type.description}` : []));
}

function describeErrors(): string {
  const codes = new Set<ErrorCode>([...codesOf("lookup"), ...codesOf("collect")]);
  return toList(
    [...codes].map((code) => {
      const { status, retry } = ERROR_CODES[code];
      return `\`${code}\` ${status}: ${meaningOf(code)} (${retry})`;
    }),
  );
}

function toList(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join("\n");
}

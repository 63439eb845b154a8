import { GraphQLSchema, printSchema } from "graphql";
import { builder } from "./builder.ts";
import {
  ACCOUNTS_PER_REQUEST,
  accountsOf,
  COINS_OF_A_CALL,
  COINS_OF_HALF_A_CALL,
} from "./field-costs.ts";
import "./collect-result.ts";
import "./error-code.ts";
import "./wallet.ts";
import "./rate-limit.ts";

builder.queryType({
  description: `Read operations. A query costs one request of the rate limit for each started ${ACCOUNTS_PER_REQUEST} accounts that it reads from the chain, at least one. A wallet's balance counts as ${accountsOf(0)} accounts, and each coin that it names as ${accountsOf(1) - accountsOf(0)} more; with ${COINS_OF_HALF_A_CALL} coins or more, as at least ${accountsOf(COINS_OF_HALF_A_CALL)}, and with ${COINS_OF_A_CALL} or more, as at least ${accountsOf(COINS_OF_A_CALL)}. So 100 wallets cost one request, and three with a coin each. Each wallet whose \`history\` it reads costs one or more besides, and \`coinsSeen\` two.`,
});
builder.mutationType({
  description:
    "Operations that spend the service's money. Each account to collect costs one request of the rate limit.",
});

builder.subscriptionType({
  description:
    "Streams of events, as server-sent events: GET or POST with `Accept: text/event-stream`. Opening one costs one request of the rate limit. A stream ends after some minutes, and when the service stops: its last event repeats the one before it, with `extensions.retryAfterSeconds`. Subscribe again then, also when a stream breaks off. RATE_LIMITED can also mean that the address, or its IPv4 /24 or IPv6 /48, has too many open streams, SERVICE_BUSY that the service has, or that it stops.",
});

const DESCRIPTION = `The address, the fees and the history of social-network accounts. Anyone can collect an account's fees to its address; only its owner can withdraw them.

**Limits**: requests from one IP address are limited, for GraphQL and REST together. \`rateLimit\` and the header \`RateLimit\` show what is left. Each root type says what its fields cost.

**Errors**: a field that fails is null, and the others resolve. \`extensions.code\` is an \`ErrorCode\`; \`extensions.retryAfterSeconds\` says when to try again.

**Links**: [error codes](errors.md), [schema](schema.graphql), [REST](docs), [first page](./).`;

const builtSchema = builder.toSchema({ sortSchema: false });

/**
 * The schema as a file of SDL, without the description of the schema itself: parsers of other
 * languages, such as libgraphqlparser and that of Rust's graphql_client, refuse text before
 * `schema`.
 */
export const SDL = `${printSchema(builtSchema)}\n`;

// Pothos has no option for the description of a schema.
export const schema = new GraphQLSchema({ ...builtSchema.toConfig(), description: DESCRIPTION });

/**
 * The typical flow with graphql-request.
 *
 *     node examples/clients/graphql-request.ts <base URL> [handle]
 */
import { ClientError, GraphQLClient } from "graphql-request";
import { failCollect, failLookup, fetchWithRetry, readArguments } from "./failures.ts";
import { CollectDocument, WalletDocument, type CollectMutation } from "./graphql.ts";

const { baseUrl, handle } = readArguments();
const client = new GraphQLClient(`${baseUrl}/graphql`, { fetch: fetchWithRetry });

// 1. Look up the handle. The client throws if the response has an error.
const { wallet } = await client.request(WalletDocument, { handle }).catch((error: unknown) => {
  const { code, message } = toFailure(error);
  failLookup(handle, code, message);
});
if (!wallet) failLookup(handle, undefined, "no wallet");
console.log(`${handle}: address ${wallet.address}, socialId ${wallet.socialId}`);
console.log(`In the vault: ${wallet.balance?.vault ?? "unknown"} SOL`);

// 2. Collect.
const { socialId } = wallet;
const { collect } = await client.request(CollectDocument, { socialId }).catch((error: unknown) => {
  const partial =
    error instanceof ClientError ? (error.response.data as CollectMutation | null) : null;
  // With a result, the collect is done: only a field of its wallet could not be read.
  if (partial?.collect) return partial;
  const { code, message } = toFailure(error);
  failCollect(code, message);
});
if (collect?.success) {
  console.log(`Collected: ${collect.collected} SOL`);
  console.log(`New balance: ${collect.newBalance} SOL`);
  console.log(`Transaction: ${collect.txSignature}`);
} else {
  console.log(`Nothing to collect: ${collect?.message}`);
}

/** The first error of a response. Without `code`, there was no response, or it was not GraphQL. */
function toFailure(error: unknown): { code?: string; message: string } {
  if (!(error instanceof ClientError)) return { message: String(error) };
  const { status, errors: [first] = [] } = error.response;
  return first
    ? { code: String(first.extensions.code), message: first.message }
    : { message: `HTTP ${status}` };
}

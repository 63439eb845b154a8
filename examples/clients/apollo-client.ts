/**
 * The typical flow with Apollo Client.
 *
 *     node examples/clients/apollo-client.ts <base URL> [handle]
 */
import { ApolloClient, CombinedGraphQLErrors, HttpLink, InMemoryCache } from "@apollo/client/core";
import { failCollect, failLookup, fetchWithRetry, readArguments } from "./failures.ts";
import { CollectDocument, WalletDocument } from "./graphql.ts";

const { baseUrl, handle } = readArguments();
const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: new HttpLink({ uri: `${baseUrl}/graphql`, fetch: fetchWithRetry }),
});

// 1. Look up the handle. With errorPolicy "all", the client returns errors instead of throwing
//    them.
const errorPolicy = "all";
const lookup = await client.query({ query: WalletDocument, variables: { handle }, errorPolicy });
const wallet = lookup.data?.wallet;
if (!wallet) failLookup(handle, codeOf(lookup.error), `${lookup.error?.message}`);
console.log(`${handle}: address ${wallet.address}, socialId ${wallet.socialId}`);
console.log(`In the vault: ${wallet.balance?.vault ?? "unknown"} SOL`);

// 2. Collect. The result's `wallet` updates the cache, and with it every component that shows the
//    balance.
const { socialId } = wallet;
const { data, error } = await client.mutate({
  mutation: CollectDocument,
  variables: { socialId },
  errorPolicy,
});
const result = data?.collect;
if (!result) failCollect(codeOf(error), `${error?.message}`);
if (result.success) {
  console.log(`Collected: ${result.collected} SOL`);
  console.log(`New balance: ${result.newBalance} SOL`);
  console.log(`Transaction: ${result.txSignature}`);
} else {
  console.log(`Nothing to collect: ${result.message}`);
}
const cached = client.readQuery({ query: WalletDocument, variables: { handle } });
console.log(`In the vault, from the cache: ${cached?.wallet?.balance?.vault ?? "unknown"} SOL`);

/** The service's code; undefined if there was no response, or it was not GraphQL. */
function codeOf(failure: unknown): string | undefined {
  return CombinedGraphQLErrors.is(failure)
    ? String(failure.errors[0]?.extensions?.code)
    : undefined;
}

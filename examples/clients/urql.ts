/**
 * The typical flow with urql and its normalized cache.
 *
 *     node examples/clients/urql.ts <base URL> [handle]
 */
import { Client, fetchExchange, type CombinedError } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { failCollect, failLookup, fetchWithRetry, readArguments } from "./failures.ts";
import { CollectDocument, WalletDocument } from "./graphql.ts";

const { baseUrl, handle } = readArguments();
const client = new Client({
  url: `${baseUrl}/graphql`,
  // Wallets have an `id`. The cache keeps objects without one in their parent.
  exchanges: [
    cacheExchange({ keys: { Balance: () => null, CollectResult: () => null } }),
    fetchExchange,
  ],
  preferGetMethod: false,
  fetch: fetchWithRetry,
});

// 1. Look up the handle.
const lookup = await client.query(WalletDocument, { handle });
const wallet = lookup.data?.wallet;
if (!wallet) failLookup(handle, codeOf(lookup.error), `${lookup.error?.message}`);
console.log(`${handle}: address ${wallet.address}, socialId ${wallet.socialId}`);
console.log(`In the vault: ${wallet.balance?.vault ?? "unknown"} SOL`);

// 2. Collect. The result's `wallet` updates the cache, and with it every component that shows the
//    balance.
const { data, error } = await client.mutation(CollectDocument, { socialId: wallet.socialId });
const result = data?.collect;
if (!result) failCollect(codeOf(error), `${error?.message}`);
if (result.success) {
  console.log(`Collected: ${result.collected} SOL`);
  console.log(`New balance: ${result.newBalance} SOL`);
  console.log(`Transaction: ${result.txSignature}`);
} else {
  console.log(`Nothing to collect: ${result.message}`);
}
const cached = client.readQuery(WalletDocument, { handle });
console.log(
  `In the vault, from the cache: ${cached?.data?.wallet?.balance?.vault ?? "unknown"} SOL`,
);

/** The service's code; undefined if there was no response, or it was not GraphQL. */
function codeOf(failure: CombinedError | undefined): string | undefined {
  const code = failure?.graphQLErrors[0]?.extensions.code;
  return typeof code === "string" ? code : undefined;
}

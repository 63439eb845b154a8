/**
 * The typical flow over REST with openapi-fetch.
 *
 *     node examples/clients/openapi-fetch.ts <base URL> [handle]
 */
import createClient from "openapi-fetch";
import { failCollect, failLookup, fetchWithRetry, readArguments } from "./failures.ts";
import type { paths } from "./openapi.ts";

const { baseUrl, handle } = readArguments();
const client = createClient<paths>({ baseUrl, fetch: fetchWithRetry });

// 1. Look up the handle. The client throws only if there is no response, or it is not JSON.
const lookup = await client
  .GET("/wallet/lookup", { params: { query: { handle } } })
  .catch((error: unknown) => failLookup(handle, undefined, String(error)));
if (!lookup.data) failLookup(handle, lookup.error.error, lookup.error.message);
const { address, socialId, balance } = lookup.data;
console.log(`${handle}: address ${address}, socialId ${socialId}`);
console.log(`In the vault: ${balance.vault} SOL`);

// 2. Collect.
const { data, error } = await client
  .POST("/collect", { body: { socialId } })
  .catch((error: unknown) => failCollect(undefined, String(error)));
if (data) {
  console.log(`Collected: ${data.collected} SOL`);
  console.log(`New balance: ${data.newBalance} SOL`);
  console.log(`Transaction: ${data.txSignature}`);
} else if (error.error === "NOTHING_TO_COLLECT") {
  console.log(`Nothing to collect: ${error.message}`);
} else {
  failCollect(error.error, error.message);
}

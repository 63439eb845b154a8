/**
 * Shows what a handle's vault holds, whenever it changes, with urql.
 *
 *     node examples/clients/watch-urql.ts <base URL> [handle]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { cacheExchange, Client, fetchExchange } from "@urql/core";
import { readArguments } from "./failures.ts";
import { WatchDocument } from "./graphql.ts";

const RETRY_SECONDS = 1;

const { baseUrl, handle } = readArguments();
const client = new Client({
  url: `${baseUrl}/graphql`,
  exchanges: [cacheExchange, fetchExchange],
  // Subscribes by server-sent events.
  fetchSubscriptions: true,
  preferGetMethod: false,
});

function watch(): void {
  const { unsubscribe } = client
    .subscription(WatchDocument, { handle })
    .subscribe(({ data, error, extensions, hasNext }) => {
      if (hasNext && !error) {
        console.log(`In the vault: ${data?.wallet?.balance?.vault} SOL`);
        return;
      }
      unsubscribe();
      const { retryAfterSeconds } = error?.graphQLErrors[0]?.extensions ?? extensions ?? {};
      if (error && !error.networkError && retryAfterSeconds === undefined) {
        console.error(`${handle}: ${error.message}`);
        process.exitCode = 1;
        return;
      }
      // The service ends a stream after some minutes. Its last event says when to come back.
      const seconds = Number(retryAfterSeconds ?? RETRY_SECONDS) + Math.random();
      void sleep(seconds * 1_000).then(watch);
    });
}
watch();

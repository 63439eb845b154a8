/**
 * Shows what a handle's vault holds, whenever it changes, with urql.
 *
 *     node examples/clients/watch-urql.ts <base URL> [handle]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { cacheExchange, Client, fetchExchange } from "@urql/core";
import { readArguments } from "./failures.ts";
import { WatchDocument } from "./graphql.ts";

const RECONNECT_MS = 1_000;

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
    .subscribe(({ data, error }) => {
      if (data?.wallet?.balance) console.log(`In the vault: ${data.wallet.balance.vault} SOL`);
      else if (error?.networkError) {
        // A stream breaks off after some minutes.
        unsubscribe();
        void sleep(RECONNECT_MS).then(watch);
      } else {
        console.error(`${handle}: ${error?.message ?? "no balance"}`);
        process.exitCode = 1;
      }
    });
}
watch();

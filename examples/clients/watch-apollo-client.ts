/**
 * Shows what a handle's vault holds, whenever it changes, with Apollo Client. The service sends
 * server-sent events, which Apollo's own link does not read: graphql-sse does.
 *
 *     node examples/clients/watch-apollo-client.ts <base URL> [handle]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, Observable } from "@apollo/client/core";
import { OperationTypeNode, print } from "graphql";
import { createClient } from "graphql-sse";
import { fetchWithRetry, readArguments } from "./failures.ts";
import { WatchDocument } from "./graphql.ts";

const { baseUrl, handle } = readArguments();
const url = `${baseUrl}/graphql`;
/** From the last event of a stream that the service has ended, which it does after some minutes. */
let retryAfterSeconds = 0;
const events = createClient({
  url,
  retryAttempts: Infinity,
  retry: (failures) =>
    sleep((Math.max(retryAfterSeconds, Math.min(2 ** failures, 60)) + Math.random()) * 1_000),
});
const eventLink = new ApolloLink(
  ({ query, variables }) =>
    new Observable<ApolloLink.Result>((observer) =>
      events.subscribe<Record<string, unknown>, { retryAfterSeconds?: number }>(
        { query: print(query), variables },
        {
          next: (result) => {
            retryAfterSeconds = result.extensions?.retryAfterSeconds ?? 0;
            observer.next(result as ApolloLink.Result);
          },
          error: (error) => {
            observer.error(error);
          },
          complete: () => {
            observer.complete();
          },
        },
      ),
    ),
);
const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    eventLink,
    new HttpLink({ uri: url, fetch: fetchWithRetry }),
  ),
});

// Each event also updates the cache, and with it every component that shows the balance.
client.subscribe({ query: WatchDocument, variables: { handle } }).subscribe({
  next({ data, error }) {
    if (data?.wallet?.balance) console.log(`In the vault: ${data.wallet.balance.vault} SOL`);
    else fail(error?.message ?? "no balance");
  },
  error: ({ message }: Error) => {
    fail(message);
  },
});

function fail(message: string): void {
  console.error(`${handle}: ${message}`);
  process.exitCode = 1;
}

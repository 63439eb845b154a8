import { createHash } from "node:crypto";
import {
  ApolloClient,
  ApolloLink,
  CombinedGraphQLErrors,
  gql,
  HttpLink,
  InMemoryCache,
  type TypedDocumentNode,
} from "@apollo/client/core";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";
import { describe, expect } from "vitest";
import { recordFetch } from "../support/recorded-fetch.ts";
import { withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ RATE_LIMIT_MAX: "10" });

const GRAPHQL_TYPE = "application/graphql-response+json; charset=utf-8";

const WALLET: TypedDocumentNode<any, { handle: string }> = gql`
  query Wallet($handle: String!) {
    wallet(handle: $handle) {
      id
      handle
      socialId
      address
      balance {
        vault
        total
      }
    }
  }
`;

let clients = 0;
/** Creates a client with an address of its own, in the rate limit. */
function createClient(...links: ApolloLink[]) {
  const { exchanges, fetch } = recordFetch(`192.0.2.${++clients}`);
  const http = new HttpLink({ uri: `${world.url}/graphql`, fetch });
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    link: ApolloLink.from([...links, http]),
  });
  return { client, exchanges };
}

/** The errors of an operation that must fail with GraphQL errors. */
async function errorsOf(operation: Promise<unknown>) {
  const error: unknown = await operation.then(
    () => expect.fail("the operation succeeded"),
    (reason: unknown) => reason,
  );
  return CombinedGraphQLErrors.is(error) ? error.errors : expect.fail(String(error));
}

describe("Apollo Client", () => {
  it("reads a wallet, each time in the media type it prefers", async () => {
    const { client, exchanges } = createClient();
    for (const fetchPolicy of ["network-only", "network-only", "cache-first"] as const) {
      const { data } = await client.query({
        query: WALLET,
        variables: { handle: "creator" },
        fetchPolicy,
      });
      expect(data.wallet).toMatchObject({
        handle: "creator",
        address: world.account("creator").address,
        balance: { vault: "3.1000", total: "8.3000" },
      });
    }
    expect(exchanges).toEqual(
      Array(2).fill(expect.objectContaining({ method: "POST", status: 200, type: GRAPHQL_TYPE })),
    );
    // The member that no other client sends.
    expect(exchanges[0]!.sent.extensions).toHaveProperty("clientLibrary.name", "@apollo/client");
  });

  it("reads the errors of a request that the service refuses as a whole", async () => {
    const { client, exchanges } = createClient();
    const invalid = gql`
      {
        nothing
      }
    `;
    expect(await errorsOf(client.query({ query: invalid }))).toMatchObject([
      { extensions: { code: "GRAPHQL_VALIDATION_FAILED" } },
    ]);
    const query = {
      query: WALLET,
      variables: { handle: "newcomer" },
      fetchPolicy: "network-only",
    } as const;
    for (let i = 1; i < 10; i++) await client.query(query);
    expect(await errorsOf(client.query(query))).toMatchObject([
      { extensions: { code: "RATE_LIMITED", retryAfterSeconds: expect.any(Number) } },
    ]);
    expect([exchanges[0]!.status, exchanges.at(-1)!.status]).toEqual([400, 429]);
  });

  it.each([false, true])(
    "sends the text of a persisted query after one refusal (useGETForHashedQueries: %s)",
    async (useGETForHashedQueries) => {
      const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
      const { client, exchanges } = createClient(
        new PersistedQueryLink({ sha256, useGETForHashedQueries }),
      );
      for (const handle of ["creator", "newcomer"]) {
        const { data } = await client.query({ query: WALLET, variables: { handle } });
        expect(data.wallet.handle).toBe(handle);
      }
      const method = useGETForHashedQueries ? "GET" : "POST";
      expect(exchanges).toMatchObject([
        { method, status: 400 },
        { method: "POST", status: 200 },
        { method: "POST", status: 200 },
      ]);
      expect(exchanges.map(({ sent }) => typeof sent?.query)).toEqual([
        "undefined",
        "string",
        "string",
      ]);
    },
  );
});

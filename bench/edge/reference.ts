/**
 * The server that the gateway is compared with: a straightforward implementation of lookups, on Fastify for REST, and
 * on Mercurius with JIT and loaders for GraphQL. Like the gateway it trusts its proxy. It has a rate limit only with
 * WITH_LIMIT. Prints its URL.
 */
import Fastify from "fastify";
import rateLimit from "@fastify/rate-limit";
import mercurius from "mercurius";
import { findWallet, readBalances, TYPES, type Wallet } from "./reference-wallets.ts";

const app = Fastify({ trustProxy: "127.0.0.1" });
if (process.env.WITH_LIMIT) await app.register(rateLimit, { max: 20, timeWindow: 60_000, cache: 200_000 });

app.get<{ Querystring: { handle: string } }>(
  "/wallet/lookup",
  {
    schema: {
      querystring: {
        type: "object",
        required: ["handle"],
        properties: { handle: { type: "string", pattern: "^[A-Za-z0-9]{1,15}$" } },
      },
      response: {
        200: {
          type: "object",
          properties: {
            handle: { type: "string" },
            socialId: { type: "string" },
            address: { type: "string" },
            balance: {
              type: "object",
              properties: { vault: { type: "string" }, pda: { type: "string" }, total: { type: "string" } },
            },
          },
        },
      },
    },
  },
  async (request) => {
    const wallet = await findWallet(request.query.handle);
    const [balance] = await readBalances([wallet]);
    return { ...wallet, balance };
  },
);

await app.register(mercurius, {
  schema: TYPES,
  jit: 1,
  resolvers: { Query: { wallet: (_root: unknown, { handle }: { handle: string }) => findWallet(handle) } },
  loaders: {
    Wallet: {
      balance: {
        loader: (queries: { obj: Wallet }[]) => readBalances(queries.map(({ obj }) => obj)),
        opts: { cache: false },
      },
    },
  },
});

console.log(await app.listen({ host: "127.0.0.1", port: 0 }));

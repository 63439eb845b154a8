/**
 * The server that the gateway is compared with: a straightforward implementation of lookups, on Fastify and
 * @solana/web3.js's Connection for REST, and on Mercurius with JIT and loaders for GraphQL. Like the gateway it
 * trusts its proxy and caches accounts and addresses. It reads balances separately for each request, and has a
 * rate limit only with WITH_LIMIT. Prints its URL.
 */
import { Connection, PublicKey } from "@solana/web3.js";
import Fastify from "fastify";
import rateLimit from "@fastify/rate-limit";
import mercurius from "mercurius";
import { createAddresses, type AccountAddresses } from "../../src/chain/addresses.ts";

interface Wallet {
  addresses: AccountAddresses;
  address: string;
  handle: string;
  socialId: string;
}

const { SOCIAL_API_URL, SOLANA_RPC_URL, ESCROW_PROGRAM_ID } = process.env as Record<string, string>;
const connection = new Connection(SOLANA_RPC_URL!, "confirmed");
const addressesOf = createAddresses({
  escrowProgramId: ESCROW_PROGRAM_ID!,
  escrowSeed: "social",
  launchpadProgramId: "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P",
  launchpadAmmProgramId: "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA",
});
const cache = new Map<string, Wallet>();
const rentMinimum = await connection.getMinimumBalanceForRentExemption(0);

async function findWallet(handle: string): Promise<Wallet> {
  const cached = cache.get(handle.toLowerCase());
  if (cached) return cached;
  const response = await fetch(`${SOCIAL_API_URL}/2/users/by?usernames=${handle}`);
  const { data } = (await response.json()) as { data: [{ id: string; username: string }] };
  const { id: socialId, username } = data[0];
  const addresses = addressesOf(socialId);
  const wallet = { handle: username, socialId, address: addresses.address, addresses };
  cache.set(handle.toLowerCase(), wallet);
  return wallet;
}

const toSol = (lamports: number) => (Math.floor(lamports / 1e5) / 1e4).toFixed(4);

async function readBalances(wallets: Wallet[]) {
  const keys = wallets.flatMap(({ addresses: of }) => [of.address, of.creatorVault, of.ammVault]);
  const accounts: Awaited<ReturnType<typeof connection.getMultipleAccountsInfo>> = [];
  for (let i = 0; i < keys.length; i += 100) {
    const part = keys.slice(i, i + 100).map((key) => new PublicKey(key));
    accounts.push(...(await connection.getMultipleAccountsInfo(part)));
  }
  return wallets.map((_, i) => {
    const [pda, vault, amm] = accounts.slice(3 * i, 3 * i + 3);
    const inAmm = amm && amm.data.length >= 72 ? Number(amm.data.readBigUInt64LE(64)) : 0;
    const collectable = Math.max(0, (vault?.lamports ?? 0) + inAmm - rentMinimum);
    const atAddress = pda?.lamports ?? 0;
    return { vault: toSol(collectable), pda: toSol(atAddress), total: toSol(collectable + atAddress) };
  });
}

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
  schema: `
    type Query { wallet(handle: String!): Wallet }
    type Wallet { handle: String socialId: String! address: String! balance: Balance }
    type Balance { vault: String! pda: String! total: String! }
  `,
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

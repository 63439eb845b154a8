/**
 * The server to compare the gateway with. It answers the same lookups on bare node:http, with
 * graphql-jit and the Connection of @solana/web3.js. Like the gateway, it caches accounts and
 * addresses, and reads balances for each request. It has no rate limit, log or metrics. With
 * `YOGA=1`, Yoga answers GraphQL requests, by graphql-js, with its cache of documents. Prints its
 * URL.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { parse as parseQuery } from "node:querystring";
import { Connection, PublicKey } from "@solana/web3.js";
import DataLoader from "dataloader";
import { buildSchema, parse, type GraphQLObjectType } from "graphql";
import { compileQuery, type CompiledQuery } from "graphql-jit";
import { createYoga } from "graphql-yoga";
import { createAddresses } from "../../src/chain/launchpad/account-addresses.ts";

const { SOCIAL_API_URL, SOLANA_RPC_URL, ESCROW_PROGRAM_ID, YOGA } = process.env as Record<
  string,
  string
>;
const connection = new Connection(SOLANA_RPC_URL!, "finalized");
const RENT_MINIMUM = 890_880;
const addressesOf = createAddresses({
  escrowProgramId: ESCROW_PROGRAM_ID!,
  escrowSeed: "social",
});

async function readWallet(name: string) {
  const response = await fetch(`${SOCIAL_API_URL}/2/users/by?usernames=${name}`);
  const { data } = (await response.json()) as {
    data: [{ id: string; name: string; username: string }];
  };
  const [{ id: socialId, username: handle, name: profileName }] = data;
  const addresses = addressesOf(socialId);
  return {
    handle,
    profile: { name: profileName },
    socialId,
    address: addresses.address,
    addresses,
  };
}

type Wallet = Awaited<ReturnType<typeof readWallet>>;
const wallets = new Map<string, Promise<Wallet>>();

function findWallet(handle: string): Promise<Wallet> {
  const key = handle.toLowerCase();
  const wallet = wallets.get(key) ?? readWallet(handle);
  wallets.set(key, wallet);
  return wallet;
}

const toSol = (lamports: number) => (Math.floor(lamports / 1e5) / 1e4).toFixed(4);

async function readBalances(some: readonly Wallet[]) {
  const keys = some.flatMap(({ addresses: of }) => [of.address, of.creatorVault, of.ammVault]);
  const accounts: Awaited<ReturnType<typeof connection.getMultipleAccountsInfo>> = [];
  for (let i = 0; i < keys.length; i += 100) {
    const part = keys.slice(i, i + 100).map((key) => new PublicKey(key));
    accounts.push(...(await connection.getMultipleAccountsInfo(part)));
  }
  return some.map((_, i) => {
    const [pda, vault, amm] = accounts.slice(3 * i, 3 * i + 3);
    const inAmm = amm && amm.data.length >= 72 ? Number(amm.data.readBigUInt64LE(64)) : 0;
    const collectable = Math.max(0, (vault?.lamports ?? 0) + inAmm - RENT_MINIMUM);
    const atAddress = pda?.lamports ?? 0;
    const total = collectable + atAddress;
    const withdrawable = Math.floor((total * 98) / 100);
    return {
      ...{ vault: toSol(collectable), pda: toSol(atAddress), total: toSol(total) },
      withdrawable: toSol(withdrawable),
      lamports: {
        ...{ vault: String(collectable), pda: String(atAddress), total: String(total) },
        withdrawable: String(withdrawable),
      },
    };
  });
}

/** The context of one request. */
interface Context {
  balances?: DataLoader<Wallet, unknown>;
}

const schema = buildSchema(`
  type Query { wallet(handle: String!): Wallet }
  type Wallet { handle: String socialId: String! address: String! balance: Balance }
  type Balance { vault: String! pda: String! total: String! }
`);
const fieldsOf = (type: string) =>
  (schema.getType(type) as GraphQLObjectType<Wallet, Context>).getFields();
fieldsOf("Query").wallet!.resolve = (_root, { handle }: { handle: string }) => findWallet(handle);
fieldsOf("Wallet").balance!.resolve = (wallet, _args, context) =>
  (context.balances ??= new DataLoader(readBalances, { cache: false })).load(wallet);

const operations = new Map<string, CompiledQuery>();

function runOperation(query: string, variables: object = {}) {
  const operation = operations.get(query) ?? (compileQuery(schema, parse(query)) as CompiledQuery);
  operations.set(query, operation);
  return operation.query(undefined, {}, variables);
}

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("error", reject).on("end", () => {
      resolve(body);
    });
  });
}

async function answer(request: IncomingMessage): Promise<unknown> {
  const [path, search = ""] = request.url!.split("?");
  if (request.method === "POST") {
    const { query, variables } = JSON.parse(await readBody(request)) as {
      query: string;
      variables?: object;
    };
    return runOperation(query, variables);
  }
  const parameters = parseQuery(search) as Record<string, string>;
  if (path !== "/wallet/lookup")
    return runOperation(parameters.query!, JSON.parse(parameters.variables!) as object);
  const wallet = await findWallet(parameters.handle!);
  const [balance] = await readBalances([wallet]);
  const { derivation } = wallet.addresses;
  return { ...wallet, addresses: undefined, derivation, balance };
}

const yoga = createYoga({ schema, logging: false, graphiql: false, landingPage: false });

const server = createServer((request, response) => {
  if (YOGA && request.url!.startsWith("/graphql")) {
    void yoga(request, response);
    return;
  }
  void answer(request).then((result) => {
    const json = JSON.stringify(result);
    const length = Buffer.byteLength(json);
    response
      .writeHead(200, {
        "content-type": "application/json; charset=utf-8",
        "content-length": length,
      })
      .end(json);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

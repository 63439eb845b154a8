/**
 * The fastest server that the gateway is compared with: the same lookups on bare node:http, with graphql-jit for
 * GraphQL. It has no rate limit. Prints its URL.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { parse as parseQuery } from "node:querystring";
import DataLoader from "dataloader";
import { buildSchema, parse, validate, type ExecutionResult, type GraphQLObjectType } from "graphql";
import { compileQuery, isCompiledQuery, type CompiledQuery } from "graphql-jit";
import { findWallet, readBalances, TYPES, type Wallet } from "./reference-wallets.ts";

/** Of one request. */
interface Context {
  balances?: DataLoader<Wallet, unknown>;
}

const schema = buildSchema(TYPES);
const fieldsOf = (type: string) => (schema.getType(type) as GraphQLObjectType<Wallet, Context>).getFields();
fieldsOf("Query").wallet!.resolve = (_root, { handle }: { handle: string }) => findWallet(handle);
fieldsOf("Wallet").balance!.resolve = (wallet, _args, context) =>
  (context.balances ??= new DataLoader(readBalances, { cache: false })).load(wallet);

const operations = new Map<string, CompiledQuery>();

/** Compiles a document of one operation. */
function compile(text: string): CompiledQuery {
  const document = parse(text);
  const errors = validate(schema, document);
  if (errors.length > 0) throw new AggregateError(errors);
  const operation = compileQuery(schema, document);
  if (!isCompiledQuery(operation)) throw new Error("the operation does not compile");
  operations.set(text, operation);
  return operation;
}

function runOperation(
  text: string,
  variables: object | undefined,
): ExecutionResult | Promise<ExecutionResult> {
  return (operations.get(text) ?? compile(text)).query(undefined, {}, variables ?? {});
}

async function lookUp(handle: string) {
  const wallet = await findWallet(handle);
  const [balance] = await readBalances([wallet]);
  return { handle: wallet.handle, socialId: wallet.socialId, address: wallet.address, balance };
}

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      resolve(body);
    });
    request.on("error", reject);
  });
}

async function answer(request: IncomingMessage): Promise<unknown> {
  const [path, search = ""] = request.url!.split("?");
  if (request.method === "POST") {
    const { query, variables } = JSON.parse(await readBody(request)) as { query: string; variables?: object };
    return runOperation(query, variables);
  }
  const parameters = parseQuery(search) as Record<string, string>;
  if (path === "/wallet/lookup") return lookUp(parameters.handle!);
  return runOperation(parameters.query!, JSON.parse(parameters.variables!) as object);
}

const server = createServer((request, response) => {
  answer(request).then(
    (result) => {
      const text = JSON.stringify(result);
      response
        .writeHead(200, {
          "content-type": "application/json; charset=utf-8",
          "content-length": Buffer.byteLength(text),
        })
        .end(text);
    },
    (error: unknown) => {
      response.writeHead(500).end(String(error));
    },
  );
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

/**
 * Fakes both upstreams as cheaply as possible: a social network on which every name exists, and a
 * chain on which all accounts have the same balance. Prints its URL; `GET /chain-calls` returns the
 * number of calls to the chain.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

let chainCalls = 0;
const ACCOUNT =
  '{"lamports":3100890880,"data":["","base64"],"owner":"11111111111111111111111111111111","executable":false,"rentEpoch":0,"space":0}';
const RENT_SYSVAR = "SysvarRent111111111111111111111111111111111";
/**
 * The rent sysvar's data: 3,480 lamports per byte and year (u64), 2 years (f64), and 50% to burn
 * (u8).
 */
const RENT_ACCOUNT =
  '{"lamports":1009200,"data":["mA0AAAAAAAAAAAAAAAAAQDI=","base64"],"owner":"Sysvar1111111111111111111111111111111111111","executable":false,"rentEpoch":0,"space":17}';

/** Derives an id from the name. */
const idOf = (name: string) =>
  String(10n ** 18n + BigInt(`0x${Buffer.from(name).toString("hex").slice(0, 14)}`));

/** A method's result, as JSON. */
function rpcResult(method: string, [keys]: string[][]): string {
  if (method !== "getMultipleAccounts") return "1";
  const accounts = keys!.map((key) => (key === RENT_SYSVAR ? RENT_ACCOUNT : ACCOUNT));
  return `{"context":{"slot":1},"value":[${accounts.join(",")}]}`;
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? "/", "http://upstream");
  const answer = (json: string) => {
    response
      .writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(json),
      })
      .end(json);
  };
  if (url.pathname === "/chain-calls") answer(String(chainCalls));
  else if (url.pathname === "/2/users/by") {
    const names = (url.searchParams.get("usernames") ?? "").split(",");
    const users = names.map((username) => ({ id: idOf(username), name: username, username }));
    answer(JSON.stringify({ data: users }));
  } else
    void text(request).then((body) => {
      chainCalls++;
      const { id, method, params } = JSON.parse(body) as {
        id: unknown;
        method: string;
        params: string[][];
      };
      answer(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${rpcResult(method, params)}}`);
    });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

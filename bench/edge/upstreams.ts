/**
 * Fakes both upstreams as cheaply as possible: a social network on which every name exists, and a chain on which
 * all accounts have the same balance. Prints its URL; `GET /counts` returns the number of calls of each. The chain
 * answers after `CHAIN_DELAY_MS`.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const DELAY_MS = Number(process.env.CHAIN_DELAY_MS ?? 0);
const counts = { social: 0, chain: 0 };
const ACCOUNT =
  '{"lamports":3100890880,"data":["","base64"],"owner":"11111111111111111111111111111111","executable":false,"rentEpoch":0,"space":0}';
const RENT_SYSVAR = "SysvarRent111111111111111111111111111111111";
/** 3,480 lamports per byte and year as a u64, 2 years as an f64, and a byte. */
const RENT_ACCOUNT =
  '{"lamports":1009200,"data":["mA0AAAAAAAAAAAAAAAAAQDI=","base64"],"owner":"Sysvar1111111111111111111111111111111111111","executable":false,"rentEpoch":0,"space":17}';

/** Derives an id from the name. */
const idOf = (name: string) =>
  String(10n ** 18n + BigInt(`0x${Buffer.from(name).toString("hex").slice(0, 14)}`));

/** A method's result, as JSON. */
function rpcResult(method: string, params: unknown[]): string {
  switch (method) {
    case "getMultipleAccounts":
      return `{"context":{"slot":1},"value":[${(params[0] as string[]).map((key) => (key === RENT_SYSVAR ? RENT_ACCOUNT : ACCOUNT)).join(",")}]}`;
    case "getMinimumBalanceForRentExemption":
      return params[0] === 0 ? "890880" : "2039280";
    default:
      return "1";
  }
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? "/", "http://upstream");
  const answer = (text: string) => {
    response
      .writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) })
      .end(text);
  };
  if (url.pathname === "/counts") answer(JSON.stringify(counts));
  else if (url.pathname === "/2/users/by") {
    counts.social++;
    const names = (url.searchParams.get("usernames") ?? "").split(",");
    const users = names.map((username) => ({ id: idOf(username), name: username, username }));
    answer(JSON.stringify({ data: users }));
  } else {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      counts.chain++;
      const { id, method, params } = JSON.parse(body) as { id: unknown; method: string; params: unknown[] };
      const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${rpcResult(method, params)}}`;
      if (DELAY_MS > 0) setTimeout(answer, DELAY_MS, text);
      else answer(text);
    });
  }
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

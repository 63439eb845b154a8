import type { Chain } from "../chain/chain.ts";
import { createLoopbackServer } from "../loopback-server.ts";
import type { LoopbackServer } from "../loopback-server.ts";
import { createAccountMethods } from "./account-methods.ts";
import { answerJsonRpc, parseJsonRpcCall } from "./json-rpc.ts";
import type { JsonRpcCall } from "./json-rpc.ts";
import { createNetworkMethods } from "./network-methods.ts";
import { createTransactionMethods } from "./transaction-methods.ts";

/**
 * Serves the chain over HTTP with the JSON-RPC methods of a real node that the gateway and its
 * tools use: https://solana.com/docs/rpc/http.
 */
export function createChainRpc(options: {
  chain: Chain;
  host?: string | undefined;
  port: number;
}): Promise<LoopbackServer<JsonRpcCall>> {
  const { chain, host, port } = options;
  const methods = {
    ...createAccountMethods(chain),
    ...createTransactionMethods(chain),
    ...createNetworkMethods(chain),
  };
  return createLoopbackServer({
    host,
    port,
    describe: ({ body }) => parseJsonRpcCall(body),
    handle({ method, body }) {
      if (method !== "POST")
        return {
          status: 405,
          headers: { allow: "POST" },
          body: "Used HTTP Method is not allowed. POST is required",
        };
      return {
        status: 200,
        headers: { "content-type": "application/json" },
        body: answerJsonRpc(body, methods),
      };
    },
  });
}

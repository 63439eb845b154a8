import { createAccountMethods } from "./account-methods.ts";
import type { Chain } from "../chain/chain.ts";
import type { LaunchpadPrograms } from "../chain/creator-fees.ts";
import { answerJsonRpc, callsIn } from "./json-rpc.ts";
import type { JsonRpcCall } from "./json-rpc.ts";
import { createLoopbackServer } from "../loopback-server.ts";
import type { LoopbackServer } from "../loopback-server.ts";
import { createNetworkMethods } from "./network-methods.ts";
import { createTransactionMethods } from "./transaction-methods.ts";

/**
 * Serves the chain over HTTP as a real node does, by the JSON-RPC methods of
 * https://solana.com/docs/rpc/http, and `sandboxAddCreatorFees`. Of a batch, each call counts in `calls`.
 */
export function createChainRpc(options: {
  chain: Chain;
  launchpad: LaunchpadPrograms;
  port: number;
}): Promise<LoopbackServer<JsonRpcCall>> {
  const { chain, launchpad, port } = options;
  const methods = {
    ...createAccountMethods(chain),
    ...createTransactionMethods(chain),
    ...createNetworkMethods(chain, launchpad),
  };
  return createLoopbackServer({
    port,
    describe: ({ body }) => callsIn(body),
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

import type { Chain } from "../chain/chain.ts";
import { createLoopbackServer } from "../loopback-server.ts";
import { answerJsonRpc } from "./json-rpc.ts";
import { createMethods } from "./methods.ts";

/** Serves the chain over HTTP. */
export function createChainRpc(options: { chain: Chain; host?: string | undefined; port: number }) {
  const methods = createMethods(options.chain);
  return createLoopbackServer({
    ...options,
    handle: ({ body }) => ({
      status: 200,
      headers: { "content-type": "application/json" },
      body: answerJsonRpc(body, methods),
    }),
  });
}

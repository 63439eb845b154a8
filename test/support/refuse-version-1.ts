import type { LoopbackRequest } from "../../src/sandbox/loopback-server.ts";
import { answerJsonRpc, JsonRpcError } from "../../src/sandbox/rpc/json-rpc.ts";

const VERSION_1_PREFIX = 0x81;

function refuse(): never {
  throw new JsonRpcError(-32602, "failed to deserialize transaction");
}

/** Makes an endpoint refuse transactions of version 1, as a node that cannot decode them does. */
export const REFUSES_VERSION_1 = {
  when: ({
    method,
    params: [transaction],
  }: {
    method: string;
    params: readonly unknown[];
  }): boolean =>
    (method === "simulateTransaction" || method === "sendTransaction") &&
    typeof transaction === "string" &&
    Buffer.from(transaction, "base64")[0] === VERSION_1_PREFIX,
  then: ({ body }: LoopbackRequest) =>
    answerJsonRpc(body, { simulateTransaction: refuse, sendTransaction: refuse }),
};

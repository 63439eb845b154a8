import type { LoopbackAnswer, LoopbackRequest } from "../../src/sandbox/loopback-server.ts";

/** The answer of a fault, for the call that it replaces. */
type Answer = (request: LoopbackRequest) => LoopbackAnswer;

/** Answers a JSON-RPC call with a result. */
export const rpcResult = (result: unknown): Answer => answerWith({ result });

/** Answers a JSON-RPC call with an error. */
export const rpcError = (error: { code: number; message?: string; data?: unknown }, status = 200): Answer =>
  answerWith({ error: { message: "refused", ...error } }, status);

function answerWith(members: object, status = 200): Answer {
  return ({ body }) => {
    const { id } = JSON.parse(body) as { id: number };
    return { status, body: JSON.stringify({ jsonrpc: "2.0", id, ...members }) };
  };
}

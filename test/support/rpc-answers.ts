import type { LoopbackAnswer, LoopbackRequest } from "../../src/sandbox/loopback-server.ts";

/** The answer of a fault, for the call that it replaces. */
type Answer = (request: LoopbackRequest) => LoopbackAnswer;

/** Answers a JSON-RPC call with a result. */
export const rpcResult = (result: unknown): Answer => answerWith({ result });

/** Answers a JSON-RPC call with an error. */
export const rpcError = (
  error: { code: number; message?: string; data?: unknown },
  status = 200,
): Answer => answerWith({ error: { message: "refused", ...error } }, status);

const toAccount = (data: Buffer) => ({ lamports: 1, data: [data.toString("base64"), "base64"] });

/** The accounts of the sysvars that each read of accounts begins with. */
const SYSVARS: Readonly<Record<string, (behindMs: number) => object>> = {
  SysvarC1ock11111111111111111111111111111111(behindMs) {
    const data = Buffer.alloc(40);
    data.writeBigInt64LE(BigInt(Math.floor((Date.now() - behindMs) / 1_000)), 32);
    return toAccount(data);
  },
  SysvarRent111111111111111111111111111111111() {
    const data = Buffer.alloc(17);
    data.writeBigUInt64LE(5_080n);
    data.writeDoubleLE(1, 8);
    return toAccount(data);
  },
};

/**
 * Answers `getMultipleAccounts`: the sysvars as they are now, or were `behindMs` ago, and this
 * account at each other address.
 */
export const rpcAccounts =
  (slot: number, account: unknown, behindMs = 0): Answer =>
  (request) => {
    const [keys] = (JSON.parse(request.body) as { params: [string[]] }).params;
    const value = keys.map((key) => SYSVARS[key]?.(behindMs) ?? account);
    return rpcResult({ context: { slot }, value })(request);
  };

function answerWith(members: object, status = 200): Answer {
  return ({ body }) => {
    const { id } = JSON.parse(body) as { id: number };
    return { status, body: JSON.stringify({ jsonrpc: "2.0", id, ...members }) };
  };
}

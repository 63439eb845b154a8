import { RENT_SYSVAR } from "../../../src/chain/primitives/rent.ts";
import { CLOCK_SYSVAR } from "../../../src/chain/primitives/clock.ts";
import type { CallUpstream } from "../../../src/upstream/http.ts";

const SLOT_MS = 200;
const LATENCY_MS = 80;
const RENT = Buffer.alloc(17);
RENT.writeBigUInt64LE(5_080n);
RENT.writeDoubleLE(1, 8);

/**
 * A chain in memory, for tests with fake timers. No account but the sysvars exists, no address has
 * a transaction, no cursor is known, and every simulation fails. `callsAt`: when each call was made.
 */
export function createMeteredChain() {
  const callsAt: number[] = [];
  const slot = () => 1_000 + Math.floor(performance.now() / SLOT_MS);

  function toAccount(key: string): object | null {
    const clock = Buffer.alloc(40);
    clock.writeBigUInt64LE(BigInt(slot()));
    clock.writeBigInt64LE(BigInt(Math.floor(Date.now() / 1_000)), 32);
    const data = { [RENT_SYSVAR]: RENT, [CLOCK_SYSVAR]: clock }[key];
    return data ? { lamports: 1, data: [data.toString("base64"), "base64"] } : null;
  }

  function answer(method: string, [first]: unknown[]): unknown {
    const context = { slot: slot() };
    switch (method) {
      case "getMultipleAccounts":
        return { context, value: (first as string[]).map(toAccount) };
      case "simulateTransaction":
        return { context, value: { err: { InstructionError: [0, { Custom: 1 }] }, logs: [] } };
      case "getRecentPrioritizationFees":
      case "getSignaturesForAddress":
        return [];
      case "getSignatureStatuses":
        return { context, value: (first as string[]).map(() => null) };
      case "sendTransaction":
        return "";
      case "getTransaction":
        return null;
      default:
        return "";
    }
  }

  const callUpstream: CallUpstream = async ({ body }, read) => {
    callsAt.push(performance.now());
    await new Promise((resolve) => setTimeout(resolve, LATENCY_MS));
    const { id, method, params } = JSON.parse(body!) as {
      id: number;
      method: string;
      params: unknown[];
    };
    const text = JSON.stringify({ jsonrpc: "2.0", id, result: answer(method, params) });
    return read({ status: 200, headers: {}, text });
  };

  return { callUpstream, callsAt };
}

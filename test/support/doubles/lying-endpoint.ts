import { withRpcFaults } from "../faults.ts";
import { createLoopbackServer } from "../../../src/sandbox/loopback-server.ts";
import { answerJsonRpc, JsonRpcError } from "../../../src/sandbox/rpc/json-rpc.ts";
import { createMethods } from "../../../src/sandbox/rpc/methods.ts";
import { CLOCK_BYTES, CLOCK_SYSVAR } from "../../../src/chain/primitives/clock.ts";
import { RENT_SYSVAR } from "../../../src/chain/primitives/rent.ts";
import type { TestSandbox } from "../sandbox.ts";

/** Answers a call; `tellTruth` handles it and returns the true result, which the lie may change. */
type Lie = (tellTruth: () => any, params: any[]) => unknown;

export type LyingEndpoint = Awaited<ReturnType<typeof startLyingEndpoint>>;

/**
 * Starts another JSON-RPC endpoint of the sandbox's chain, whose answers can be changed method by
 * method.
 */
export async function startLyingEndpoint({ chain }: Pick<TestSandbox, "chain">) {
  const honest = createMethods(chain);
  let methods = honest;
  const server = withRpcFaults(
    await createLoopbackServer({
      port: 0,
      handle: ({ body }) => answerJsonRpc(body, methods),
    }),
  );
  return {
    ...server,
    /** Answers calls of these methods with lies from now on. */
    lie(lies: Readonly<Record<string, Lie>>): void {
      const lying = Object.entries(lies).map(([name, lie]) => {
        const truth = honest[name]!;
        const run = (params: unknown) =>
          lie(() => structuredClone(truth(params)), params as unknown[]);
        return [name, run] as const;
      });
      methods = { ...methods, ...Object.fromEntries(lying) };
    },
    /** Answers truthfully again. */
    stopLying(): void {
      methods = honest;
    },
  };
}

/** For a {@link Lie}: fails the call with a JSON-RPC error. */
export function refuse(code: number): never {
  throw new JsonRpcError(code, "refused");
}

/** The clock's account, as a read returns it, this much earlier. */
function earlierClock(account: any, bySeconds: number): unknown {
  const data = Buffer.from(account.data[0], "base64");
  const offset = CLOCK_BYTES - 8;
  data.writeBigInt64LE(data.readBigInt64LE(offset) - BigInt(Math.round(bySeconds)), offset);
  return { ...account, data: [data.toString("base64"), "base64"] };
}

const SLOT_SECONDS = 0.2;

/**
 * The answers of a node that is this many slots behind. `toOlder` returns an account as it was then.
 */
export function behindBy(
  slots: number,
  toOlder: (account: any, address: string) => unknown = (account) => account,
): Readonly<Record<string, Lie>> {
  const older: Lie = (tellTruth, params) => {
    const { context, value } = tellTruth();
    const slot = Number(context.slot) - slots;
    if ((params.at(-1)?.minContextSlot ?? 0) > slot)
      throw new JsonRpcError(-32016, "too new", { contextSlot: slot });
    return { context: { slot }, value };
  };
  return {
    getSlot: (tellTruth) => tellTruth() - slots,
    getEpochInfo(tellTruth) {
      const info = tellTruth();
      const [blockHeight, absoluteSlot] = [info.blockHeight - slots, info.absoluteSlot - slots];
      return { ...info, blockHeight, absoluteSlot };
    },
    getMultipleAccounts(tellTruth, params) {
      const { context, value } = older(tellTruth, params) as any;
      const accounts = value.map((account: any, i: number) => {
        const address = params[0][i];
        if (address === CLOCK_SYSVAR) return earlierClock(account, slots * SLOT_SECONDS);
        return address === RENT_SYSVAR ? account : toOlder(account, address);
      });
      return { context, value: accounts };
    },
    simulateTransaction: older,
    getLatestBlockhash: older,
    isBlockhashValid: (tellTruth, params) => ({
      ...(older(tellTruth, params) as object),
      value: false,
    }),
    getTransaction: () => null,
    getSignatureStatuses(tellTruth, params) {
      const { context, value } = older(tellTruth, params) as any;
      return { context, value: value.map(() => null) };
    },
    getSignaturesForAddress: () => [],
  };
}

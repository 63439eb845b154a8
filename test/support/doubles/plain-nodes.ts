import { Registry } from "@prometheus-io/client";
import { vi } from "vitest";
import { CLOCK_SYSVAR } from "../../../src/chain/primitives/clock.ts";
import { createRpc } from "../../../src/chain/rpc/rpc-client.ts";
import { createLogger } from "../../../src/observability/log.ts";
import { createLoopbackServer } from "../../../src/sandbox/loopback-server.ts";
import type { Overrides } from "../../../src/services.ts";
import { createCallUpstream, type CallUpstream } from "../../../src/upstream/http.ts";
import { withRpcFaults } from "../faults.ts";
import { rpcAccounts, rpcError, rpcResult } from "../rpc-answers.ts";

const PLAIN_ACCOUNT = { lamports: 1, data: ["", "base64"] };
/** A slot with room for others below it. */
const SLOT = 10_000;

export type PlainNode = Awaited<ReturnType<typeof startPlainNode>>;

/** A node without a chain: it answers as `state` says, which tests change. */
async function startPlainNode() {
  const state = {
    genesisHash: "genesis",
    slot: SLOT,
    blockHeight: 1_000,
    /** How old its clock is. */
    behindMs: 0,
    blockhash: "1".repeat(32),
    knowsBlockhashes: true,
  };
  const inContext = (value: unknown) => rpcResult({ context: { slot: state.slot }, value });
  const answers: Record<string, (params: any[]) => ReturnType<typeof rpcResult>> = {
    getGenesisHash: () => rpcResult(state.genesisHash),
    getSlot: () => rpcResult(state.slot),
    getEpochInfo: () => rpcResult({ blockHeight: state.blockHeight, absoluteSlot: state.slot }),
    getLatestBlockhash: () =>
      inContext({
        blockhash: state.blockhash,
        lastValidBlockHeight: state.blockHeight + 150,
      }),
    isBlockhashValid: () => inContext(state.knowsBlockhashes),
    getMultipleAccounts: () => rpcAccounts(state.slot, PLAIN_ACCOUNT, state.behindMs),
    getSignatureStatuses: ([signatures]) => inContext(signatures.map(() => null)),
    getSignaturesForAddress: () => rpcResult([]),
    getTransaction: () => rpcResult(null),
    getRecentPrioritizationFees: () => rpcResult([]),
    simulateTransaction: ([, { accounts }]) =>
      inContext({
        ...{ err: null, unitsConsumed: 1, logs: [] },
        accounts: (accounts.addresses as string[]).map(() => PLAIN_ACCOUNT),
      }),
    sendTransaction: () => rpcResult("signature"),
  };
  const server = await createLoopbackServer({
    port: 0,
    handle(request) {
      const { method, params } = JSON.parse(request.body) as { method: string; params: any[] };
      const { minContextSlot = 0 } = (params.at(-1) ?? {}) as { minContextSlot?: number };
      if (state.slot < minContextSlot)
        return rpcError({ code: -32016, data: { contextSlot: state.slot } })(request);
      return answers[method]!(params)(request);
    },
  });
  return { ...withRpcFaults(server), state };
}

/**
 * Starts nodes, and clients of them. Of the clocks, only `later` moves those that code reads; with
 * `fakeTimers`, it also runs timers. So nothing depends on the machine's speed.
 */
export async function startPlainNodes(count: number, { fakeTimers = false } = {}) {
  const nodes = await Promise.all(Array.from({ length: count }, startPlainNode));
  vi.useFakeTimers({
    toFake: [
      "performance",
      "Date",
      ...(fakeTimers ? (["setTimeout", "clearTimeout"] as const) : []),
    ],
  });
  const calls: string[] = [];
  const lines: string[] = [];
  const running = new Set<Promise<unknown>>();
  const callHosts = createCallUpstream(new Registry());
  const callUpstream: CallUpstream = (request, read) => {
    const { origin } = new URL(request.url);
    const isState = request.body?.includes(`[["${CLOCK_SYSVAR}"]`) ?? false;
    const name = isState ? "state" : request.method;
    calls.push(`${nodes.findIndex(({ url }) => url === origin)} ${name}`);
    const answer = callHosts(request, read);
    running.add(answer);
    void answer.catch(() => undefined).then(() => running.delete(answer));
    return answer;
  };

  /** Resolves once no call runs, also none in the background. */
  async function settle(): Promise<void> {
    do {
      await Promise.allSettled(running);
      await new Promise(setImmediate);
    } while (running.size > 0);
  }

  return {
    nodes,
    lines,
    settle,
    /** By default, no endpoint is slow. */
    createClient: (
      options: Overrides & {
        urls?: readonly string[];
        rpcTimeoutMs?: number;
        takeTurn?: () => Promise<void>;
      } = {},
    ) => {
      const { urls = nodes.map(({ url }) => url), takeTurn, ...others } = options;
      return createRpc({
        ...{ rpcTimeoutMs: 600_000, retryMs: 1, ...others },
        urls: urls.map((url) => new URL(url)),
        callUpstream,
        chainCallPlan: takeTurn && { turn: takeTurn, count: () => undefined },
        log: createLogger("trace", { write: (line) => void lines.push(line) }),
      });
    },
    /** What has been called, such as "0 getSlot" or "1 state", since calls were last taken. */
    calls,
    async takeCalls(): Promise<string[]> {
      await settle();
      return calls.splice(0);
    },
    later(ms: number): void {
      vi.advanceTimersByTime(ms);
    },
    async close(): Promise<void> {
      vi.useRealTimers();
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}

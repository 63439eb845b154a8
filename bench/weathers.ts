import { setTimeout as sleep } from "node:timers/promises";
import { CLOCK_SYSVAR } from "../src/chain/primitives/clock.ts";
import type { Chain } from "../src/sandbox/chain/chain.ts";
import type { Commitment } from "../src/sandbox/chain/slots.ts";
import { createLoopbackServer, type LoopbackRequest } from "../src/sandbox/loopback-server.ts";
import {
  answerJsonRpc,
  JsonRpcError,
  parseJsonRpcCall,
  type JsonRpcCall,
} from "../src/sandbox/rpc/json-rpc.ts";
import { createMethods } from "../src/sandbox/rpc/methods.ts";
import { startSandbox } from "../src/sandbox/sandbox.ts";
import { withFaults, type Fault } from "../test/support/faults.ts";
import { freePort } from "../test/support/free-port.ts";
import type { ToMethods } from "./load/endpoints.ts";
import { createTimeline } from "./load/timeline.ts";

/** A provider of JSON-RPC. */
interface Provider {
  /** How far each of its nodes is behind. Each call goes to one of them at random. */
  readonly behindMs?: readonly number[];
  readonly latencyMs?: number;
  readonly fault?: Fault<JsonRpcCall>;
  readonly toMethods?: ToMethods;
  /** For how long it refuses connections in the middle of the run; Infinity: from the start. */
  readonly refusesMs?: number;
  /** For how long it answers all calls with 429 and `Retry-After` in the middle of the run. */
  readonly limitsMs?: number;
}

const SLOT_MS = 200;
/** The time from the end of a block's slot until the block is final. */
const FINALITY_MS = 150;
/** The blocks before the run: for more than the 400 s that a node may be behind. */
const EARLIER_BLOCKS = 2_100;
const LATENCY_MS = 40;

const TOO_MANY = { status: 429, body: "" };
const sometimes = (share: number) => () => Math.random() < share;

/** Answers this many calls in any second, and the others with 429. */
function planOf(perSecond: number): Provider {
  const servedAt: number[] = [];
  const isUsedUp = () => {
    const now = performance.now();
    const isFull = (servedAt.at(-perSecond) ?? -Infinity) > now - 1_000;
    if (!isFull) servedAt.push(now);
    return isFull;
  };
  return { fault: { when: isUsedUp, then: TOO_MANY } };
}

function withoutHistory(): never {
  throw new JsonRpcError(-32011, "Transaction history is not available from this node");
}

const HEALTHY: Provider = {};
const REFUSED: Provider = { refusesMs: Infinity };
const HANG: Provider = { fault: { then: "hang" } };
const RESTART: Provider = { refusesMs: 5_000 };
const BEHIND_10_S: Provider = { behindMs: [10_000] };
const HALF_429: Provider = { fault: { when: sometimes(0.5), then: TOO_MANY } };

/** The trouble of one of two providers, the preferred one or the spare. */
const OF_ONE: Readonly<Record<string, Provider>> = {
  refused: REFUSED,
  hang: HANG,
  "-2s": { behindMs: [2_000] },
  "-10s": BEHIND_10_S,
  "-400s": { behindMs: [400_000] },
  "half 429": HALF_429,
  "slow 800": { latencyMs: 800 },
  "slow 3000": { latencyMs: 3_000 },
  "no history": {
    toMethods: ({ getSignatureStatuses, ...honest }) => ({
      ...honest,
      getTransaction: withoutHistory,
      getSignaturesForAddress: withoutHistory,
      getSignatureStatuses: (params) =>
        JSON.stringify(params).includes('"searchTransactionHistory":true')
          ? withoutHistory()
          : getSignatureStatuses!(params),
    }),
  },
  "v1 read -32015": {
    toMethods: ({ getTransaction, ...honest }) => ({
      ...honest,
      getTransaction(params) {
        const transaction = getTransaction!(params) as { version: unknown } | null;
        if (transaction?.version === 1)
          throw new JsonRpcError(-32015, "Transaction version (1) is not supported");
        return transaction;
      },
    }),
  },
};
const pool = (...behindMs: number[]): readonly Provider[] => [{ behindMs }, { behindMs }];

/** The providers of each weather, in order of preference. */
export const WEATHERS: ReadonlyMap<string, readonly Provider[]> = new Map([
  ["1 healthy", [HEALTHY]],
  ["2 healthy", [HEALTHY, HEALTHY]],
  ...Object.entries(OF_ONE).flatMap(([name, provider]): [string, Provider[]][] => [
    [`2 A ${name}`, [provider, HEALTHY]],
    [`2 B ${name}`, [HEALTHY, provider]],
  ]),
  ["2 both pool 0,-3s", pool(0, 3_000)],
  ["2 both pool 0,-20s", pool(0, 20_000)],
  ["2 A restart", [RESTART, HEALTHY]],
  ["1 A restart", [RESTART]],
  ["1 half 429", [HALF_429]],
  ["1 reset 30%", [{ fault: { when: sometimes(0.3), then: "reset" } }]],
  ["2 both 5/s", [planOf(5), planOf(5)]],
  ["1 429 for 3 s", [{ limitsMs: 3_000 }]],
  ["3 B hang", [HEALTHY, HANG, HEALTHY]],
  ["3 B -10s", [HEALTHY, BEHIND_10_S, HEALTHY]],
  ["3 A refused B -10s", [REFUSED, BEHIND_10_S, HEALTHY]],
]);

/** Whether a provider of the weather always works. */
export const hasHealthy = (weather: string) => WEATHERS.get(weather)!.includes(HEALTHY);

/**
 * Starts a chain with slots of 200 ms, of which nodes can show earlier states. `prepare` sets up
 * accounts, before the earliest state.
 */
export async function startChain(
  prepare: (sandbox: Awaited<ReturnType<typeof startSandbox>>) => void,
) {
  const sandbox = await startSandbox({
    ...{ slotMs: 0, rpcPort: 0, socialPort: 0 },
  });
  const { chain } = sandbox;
  prepare(sandbox);
  /** Oldest first. `at`: when it was made, in ms since 1970. */
  const blocks: { slot: number; height: number; blockhash: string; at: number }[] = [];
  function makeBlock(at: number): void {
    chain.advanceSlots(1);
    const [slot, height] = [chain.slot("processed"), chain.blockHeight("processed")];
    blocks.push({ slot, height, at, blockhash: chain.latestBlockhash("processed").blockhash });
  }
  for (let i = EARLIER_BLOCKS; i > 0; i--) makeBlock(Date.now() - i * SLOT_MS);
  const timeline = createTimeline(chain, sandbox.accounts, []);
  const clock = setInterval(() => {
    makeBlock(Date.now());
  }, SLOT_MS);

  /** When the current call is answered: all of an answer is of one slot. */
  let now = Date.now();
  /** The chain as a node shows it that is this far behind. It sends transactions on at once. */
  function viewAt(behindMs: number): Chain {
    function latest(commitment: Commitment = "finalized") {
      const until = now - behindMs;
      if (commitment === "processed") return blocks.findLast(({ at }) => at <= until)!;
      // A block's slot ends when the next block begins.
      const next = blocks.findLastIndex(({ at }) => at <= until - FINALITY_MS);
      return blocks[next - 1]!;
    }
    const validUntil = ({ height }: { height: number }) => height + 150;
    const view = timeline.viewAt(() => latest().slot);
    return {
      ...view,
      account(address) {
        const account = view.account(address);
        if (!account || address !== CLOCK_SYSVAR) return account;
        const { slot, at } = latest();
        const data = Buffer.from(account.data);
        data.writeBigUInt64LE(BigInt(slot), 0);
        data.writeBigInt64LE(BigInt(Math.floor(at / 1_000)), 32);
        return { ...account, data };
      },
      slot: (commitment) => latest(commitment).slot,
      blockHeight: (commitment) => latest(commitment).height,
      latestBlockhash(commitment) {
        const block = latest(commitment);
        return { blockhash: block.blockhash, lastValidBlockHeight: validUntil(block) };
      },
      isBlockhashValid(blockhash) {
        const { at, height } = latest("processed");
        const block = blocks.findLast((each) => each.blockhash === blockhash);
        return block !== undefined && block.at <= at && height <= validUntil(block);
      },
      landed(signature) {
        const transaction = chain.landed(signature);
        const isShown = transaction && transaction.slot <= latest("processed").slot;
        return isShown ? transaction : undefined;
      },
    };
  }

  return {
    sandbox,
    /** Starts a provider's server, which adds its calls to `calls`. */
    async startProvider(provider: Provider, calls: JsonRpcCall[]) {
      const { behindMs = [0], latencyMs = LATENCY_MS, fault, toMethods } = provider;
      const { refusesMs = 0, limitsMs = 0 } = provider;
      const nodes = behindMs.map((ms) => {
        const honest = createMethods(viewAt(ms));
        return toMethods ? toMethods(honest) : honest;
      });
      let isLimited = false;
      const limited = { ...TOO_MANY, headers: { "retry-after": String(limitsMs / 1_000) } };
      const port = await freePort();
      const url = `http://127.0.0.1:${port}`;
      async function listen() {
        const loopback = await createLoopbackServer({
          port,
          handle({ body }) {
            now = Date.now();
            const node = nodes[Math.floor(Math.random() * nodes.length)]!;
            return answerJsonRpc(body, node);
          },
        });
        const describe = ({ body }: LoopbackRequest) => parseJsonRpcCall(body);
        const server = withFaults(loopback, describe, (call) => void calls.push(call));
        if (server.url !== url) throw new Error(`another process took the port of ${url}`);
        server.faults.add({ when: () => isLimited, delayMs: latencyMs, then: limited });
        if (fault) server.faults.add({ delayMs: latencyMs, ...fault });
        server.faults.add({ delayMs: latencyMs });
        return server;
      }
      let server = refusesMs === Infinity ? undefined : await listen();
      return {
        url,
        /** Starts and ends what happens in the middle of the run. */
        async pass(): Promise<void> {
          isLimited = limitsMs > 0;
          await sleep(limitsMs);
          isLimited = false;
          if (refusesMs === 0 || !server) return;
          await server.close();
          await sleep(refusesMs);
          server = await listen();
        },
        close: async () => server?.close(),
      };
    },
    async close() {
      clearInterval(clock);
      await sandbox.close();
    },
  };
}

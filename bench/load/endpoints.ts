import type { Chain } from "../../src/sandbox/chain/chain.ts";
import { decodeTransaction } from "../../src/sandbox/chain/wire-transaction.ts";
import { createLoopbackServer, type LoopbackRequest } from "../../src/sandbox/loopback-server.ts";
import { answerJsonRpc, parseJsonRpcCall, type Methods } from "../../src/sandbox/rpc/json-rpc.ts";
import { createMethods } from "../../src/sandbox/rpc/methods.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { withFaults, type FaultyServer } from "../../test/support/faults.ts";
import type { Timeline } from "./timeline.ts";

/** A call to an endpoint. */
export interface ChainCall {
  readonly method: string;
  readonly params: readonly unknown[];
  /** The replica that calls. */
  readonly replica: number;
}

/** Converts the methods of a healthy node to those of another. */
export type ToMethods = (healthy: Methods) => Methods;

/** A JSON-RPC endpoint of the chain. */
export interface Endpoint extends FaultyServer<ChainCall> {
  /** The endpoint's URL for one replica. Its path tells the endpoint which replica calls. */
  urlFor(replica: number): string;
  /** Answers with other methods until the returned function is called. */
  become(toMethods: ToMethods): () => void;
  /** Whether a healthy node answered a replica between these times, in milliseconds since 1970. */
  wasHealthy(replica: number, from: number, to: number): boolean;
}

/** A transaction that a replica tried to send, whether or not the endpoint kept it. */
export interface SentTransaction {
  readonly signature: string;
  /** The accounts that the transaction may pay. */
  readonly accounts: readonly SandboxAccount[];
  /** The creator vaults that the transaction empties, of accounts and of sharing configs. */
  readonly vaults: readonly string[];
  readonly blockhash: string;
  /** The replica that sent it first. */
  readonly replica: number;
  /** When it was first sent, in milliseconds since 1970. */
  readonly at: number;
}

/**
 * Starts three endpoints of the chain. For each send of a transaction, calls `onSend` with its
 * addresses before the chain gets the transaction.
 */
export async function startEndpoints(
  chain: Chain,
  timeline: Timeline,
  creatorVaults: ReadonlySet<string>,
  onSend: (addresses: readonly string[]) => void,
) {
  /** The sent transactions by signature, oldest first. */
  const sent = new Map<string, SentTransaction>();
  /**
   * The addresses of sent transactions, by base64. A cache, because a transaction is sent many
   * times.
   */
  const known = new Map<string, readonly string[]>();
  /**
   * The number of sends, the time of the last send or status read, and the time of the last balance
   * shown.
   */
  const activity = { sends: 0, lastCallAt: 0, lastBalanceAt: 0 };

  function record({ method, params: [first], replica }: ChainCall): void {
    if (method === "getSignatureStatuses" || method === "sendTransaction")
      activity.lastCallAt = Date.now();
    if (method !== "sendTransaction" || typeof first !== "string") return;
    activity.sends++;
    const addresses = known.get(first);
    if (addresses) {
      onSend(addresses);
      return;
    }
    const { signature, message } = decodeTransaction(Buffer.from(first, "base64"));
    known.set(first, message.accountKeys);
    onSend(message.accountKeys);
    sent.set(signature, {
      signature,
      accounts: timeline.accountsIn(message.accountKeys),
      vaults: message.accountKeys.filter((address) => creatorVaults.has(address)),
      blockhash: message.recentBlockhash,
      replica,
      at: Date.now(),
    });
  }

  async function startEndpoint(): Promise<Endpoint> {
    // The sandbox shows a landing at once. A node's answers for one finalized slot never differ.
    const healthy = createMethods(timeline.viewAt(() => chain.slot("finalized")));
    let methods = healthy;
    const healthyCalls: { readonly replica: number; readonly at: number }[] = [];
    const replicaOf = (url: URL) => Number(url.pathname.slice(1));
    const toCall = ({ body, url }: LoopbackRequest): ChainCall => ({
      ...parseJsonRpcCall(body),
      replica: replicaOf(url),
    });
    const server = await createLoopbackServer({
      port: 0,
      handle({ body, url }) {
        if (methods === healthy) healthyCalls.push({ replica: replicaOf(url), at: Date.now() });
        return answerJsonRpc(body, methods);
      },
    });
    return {
      ...withFaults(server, toCall, record),
      urlFor: (replica) => `${server.url}/${replica}`,
      become(toMethods) {
        methods = toMethods(healthy);
        return () => {
          methods = healthy;
        };
      },
      wasHealthy: (replica, from, to) =>
        healthyCalls.some((call) => call.replica === replica && from <= call.at && call.at <= to),
    };
  }

  const endpoints = await Promise.all([startEndpoint(), startEndpoint(), startEndpoint()]);
  return {
    endpoints,
    sent: sent as ReadonlyMap<string, SentTransaction>,
    activity,
    async close() {
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    },
  };
}

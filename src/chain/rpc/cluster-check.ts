import type { Logger } from "../../observability/log.ts";
import type { Attempt, Endpoint } from "./rpc-endpoint.ts";
import { isRetryable, RpcError, toRpcError } from "./rpc-error.ts";
import { untilAborted, withDeadline } from "./deadline.ts";

/** What is known of one endpoint's cluster. */
interface Entry {
  readonly endpoint: Endpoint;
  /** Its last answer. */
  genesisHash: string | undefined;
  /** False before the first answer and after each failure: read the hash again before the endpoint is used. */
  isCurrent: boolean;
  isForeign: boolean;
  reading: Promise<void> | undefined;
}

/** An endpoint's cluster, or why it does not answer. */
export interface Cluster {
  readonly endpoint: Endpoint;
  readonly genesisHash?: string | undefined;
  readonly error?: RpcError;
}

export type ClusterCheck = ReturnType<typeof createClusterCheck>;

/**
 * Keeps endpoints of other clusters from being used: their answers about our accounts look right, and are wrong.
 *
 * A cluster is known by its genesis hash. The most preferred endpoint that has answered decides which is right. If it
 * later answers differently, the right one stays as long as another endpoint still reports it: a host name may move
 * to a node of another cluster. `endpoints` are in order of preference.
 */
export function createClusterCheck(needs: {
  endpoints: readonly Endpoint[];
  readGenesisHash: Attempt<string>;
  timeoutMs: number;
  log: Logger;
}) {
  const { readGenesisHash, timeoutMs, log } = needs;
  const entries = needs.endpoints.map((endpoint): Entry => ({
    endpoint,
    genesisHash: undefined,
    isCurrent: false,
    isForeign: false,
    reading: undefined,
  }));
  const byEndpoint = new Map(entries.map((entry) => [entry.endpoint, entry]));
  let rightHash: string | undefined;
  const findPreferred = () => entries.find((entry) => entry.genesisHash !== undefined);

  function learn(entry: Entry, genesisHash: string): void {
    const preferred = findPreferred();
    entry.genesisHash = genesisHash;
    entry.isCurrent = true;
    const isMorePreferred = !preferred || entries.indexOf(entry) < entries.indexOf(preferred);
    if (isMorePreferred || !entries.some((other) => other.genesisHash === rightHash))
      rightHash = findPreferred()?.genesisHash;
    for (const other of entries) {
      const isForeign = other.genesisHash !== undefined && other.genesisHash !== rightHash;
      if (isForeign && !other.isForeign)
        log.error(
          { host: other.endpoint.host },
          "a chain endpoint is on another cluster than the others and is not used: check SOLANA_RPC_URL",
        );
      other.isForeign = isForeign;
    }
  }

  /** All callers share one read, which has its own deadline. */
  function read(entry: Entry): Promise<void> {
    const { endpoint } = entry;
    entry.reading ??= withDeadline(timeoutMs, (deadline) => readGenesisHash(endpoint, deadline))
      .then((genesisHash) => {
        learn(entry, genesisHash);
      })
      .finally(() => {
        entry.reading = undefined;
      });
    return entry.reading;
  }

  function assertNotForeign({ endpoint: { host }, isForeign }: Entry): void {
    if (isForeign) throw new RpcError("cluster", "getGenesisHash", host);
  }

  return {
    /**
     * Makes an attempt at an endpoint of the right cluster; reads its genesis hash first where that is due. Throws
     * an {@link RpcError} `cluster` for an endpoint of another cluster.
     */
    async attempt<T>(attempt: Attempt<T>, endpoint: Endpoint, signal: AbortSignal): Promise<T> {
      const entry = byEndpoint.get(endpoint)!;
      if (!entry.isCurrent) {
        await untilAborted(read(entry), signal).catch((cause: unknown) => {
          const error = toRpcError(cause, "getGenesisHash", endpoint.host);
          // Another endpoint may still answer the caller's request.
          throw isRetryable(error)
            ? error
            : new RpcError("unreadable", "getGenesisHash", endpoint.host, { cause });
        });
      }
      assertNotForeign(entry);
      const result = await attempt(endpoint, signal);
      // A more preferred endpoint may have answered in the meantime.
      assertNotForeign(entry);
      return result;
    },

    /** Call after a failure: the next attempt reads the endpoint's genesis hash again. */
    forget(endpoint: Endpoint): void {
      byEndpoint.get(endpoint)!.isCurrent = false;
    },

    /** The cluster's genesis hash; undefined until an endpoint has answered. */
    genesisHash: () => rightHash,

    /** Reads every endpoint's genesis hash, in order of preference. */
    readAll: () =>
      Promise.all(
        entries.map((entry) => {
          const { endpoint } = entry;
          return read(entry).then(
            (): Cluster => ({ endpoint, genesisHash: entry.genesisHash }),
            (cause: unknown): Cluster => ({
              endpoint,
              error: toRpcError(cause, "getGenesisHash", endpoint.host),
            }),
          );
        }),
      ),
  };
}

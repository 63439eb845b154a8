import type { EndpointBackoff } from "./endpoint-backoff.ts";
import type { EndpointMembership } from "./endpoint-membership.ts";
import type { EndpointProgress } from "./endpoint-progress.ts";
import type { Endpoint } from "./rpc-endpoint.ts";
import { toRpcError, type RpcError } from "./rpc-error.ts";

/** An endpoint's cluster, or the error if the endpoint does not answer. */
export interface Cluster {
  readonly endpoint: Endpoint;
  readonly genesisHash?: string | undefined;
  readonly error?: RpcError;
}

/** While there are calls, an endpoint that has been silent for this long is asked for its state. */
const CHECK_AFTER_MS = 2_000;

/** Reads endpoints' genesis hashes and states without a caller's call. */
export function createEndpointChecks(needs: {
  endpoints: readonly Endpoint[];
  failures: EndpointBackoff;
  membership: EndpointMembership;
  progress: EndpointProgress;
  /** Records that a read failed. */
  fail: (endpoint: Endpoint, cause: unknown) => void;
}) {
  const { endpoints, failures, membership, progress, fail } = needs;
  const checking = new Set<Endpoint>();

  async function check(endpoint: Endpoint): Promise<void> {
    const isSilent = progress.silentMs(endpoint) >= CHECK_AFTER_MS;
    const isDue = membership.isVerified(endpoint)
      ? membership.isDue(endpoint)
      : isSilent || failures.hasFailed(endpoint);
    if (checking.has(endpoint) || failures.isBackingOff(endpoint) || !(isSilent || isDue)) return;
    checking.add(endpoint);
    try {
      // Without a hash to read, the state is read after the caller has gone on.
      await (isDue ? membership.verify(endpoint) : undefined);
      membership.assertNotForeign(endpoint);
      if (isSilent) await progress.read(endpoint);
    } catch (cause) {
      fail(endpoint, cause);
    } finally {
      checking.delete(endpoint);
    }
  }

  return {
    /**
     * Reads the state of endpoints that no call has used lately, and the genesis hash where that is
     * due.
     */
    check(): void {
      for (const endpoint of endpoints) void check(endpoint);
    },

    /**
     * Reads each endpoint's cluster and state, before the first calls. Results are in order of
     * preference.
     */
    readClusters: () =>
      Promise.all(
        endpoints.map(async (endpoint): Promise<Cluster> => {
          const state = progress.read(endpoint).catch((cause: unknown) => {
            fail(endpoint, cause);
          });
          try {
            await Promise.all([membership.verify(endpoint), state]);
            return { endpoint, genesisHash: membership.hashOf(endpoint) };
          } catch (cause) {
            return { endpoint, error: toRpcError(cause, "getGenesisHash", endpoint.host) };
          }
        }),
      ),
  };
}

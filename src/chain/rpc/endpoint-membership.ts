import type { Logger } from "../../observability/log.ts";
import { LONG_AGO, monotonicNow, type MonotonicTime, msSince } from "../../time/monotonic.ts";
import { untilAborted, withDeadline } from "./deadline.ts";
import type { CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import { RpcError, toRpcError } from "./rpc-error.ts";
import type { RpcMethod } from "./rpc-results.ts";

interface Membership {
  readonly endpoint: Endpoint;
  /** The genesis hash that the endpoint last reported; undefined before its first report. */
  genesisHash: string | undefined;
  isForeign: boolean;
  /**
   * When the genesis hash was last read; undefined before the first read, and after each failure.
   */
  verifiedAt: MonotonicTime | undefined;
  verifying: Promise<void> | undefined;
}

const VERIFY_AFTER_MS = 60_000;

export const IS_FOREIGN =
  "a chain endpoint is on another cluster than the others and is not used: check SOLANA_RPC_URL";

export type EndpointMembership = ReturnType<typeof createEndpointMembership>;

/**
 * Knows which endpoints are on our cluster, and whether that is still known. `endpoints`: most
 * preferred first.
 *
 * An endpoint on the wrong cluster is not used: its answers about our accounts look right, but are
 * wrong. The right genesis hash is the one that most endpoints report. One of several endpoints may
 * lie, so a hash that two have reported is replaced only by one that two report, and more than this
 * one. Until two report the same hash, none is wrong; but of only two endpoints that differ, the
 * preferred one is right. The hash is read before the first use, in the background after a failure,
 * and once a minute. After a failure, a caller waits for this read only if no other endpoint works.
 */
export function createEndpointMembership(needs: {
  endpoints: readonly Endpoint[];
  callEndpoint: CallEndpoint;
  rpcTimeoutMs: number;
  log: Logger;
}) {
  const { endpoints, callEndpoint, rpcTimeoutMs, log } = needs;
  const all = endpoints.map((endpoint): Membership => ({
    endpoint,
    ...{ genesisHash: undefined, isForeign: false, verifiedAt: undefined, verifying: undefined },
  }));
  const byEndpoint = new Map(all.map((each) => [each.endpoint, each]));
  const of = (endpoint: Endpoint) => byEndpoint.get(endpoint)!;
  let rightHash: string | undefined;
  /** Whether two endpoints have reported the right hash at the same time. */
  let isConfirmed = false;

  const reporting = (genesisHash: string | undefined) =>
    all.filter((each) => each.genesisHash === genesisHash).length;

  function learn(membership: Membership, genesisHash: string): void {
    Object.assign(membership, { genesisHash, verifiedAt: monotonicNow() });
    // Hashes are in order of preference, so that a tie is the preferred endpoint's.
    const hashes = all.flatMap((each) => each.genesisHash ?? []);
    const commonest = hashes.reduce((a, b) => (reporting(b) > reporting(a) ? b : a));
    if (!isConfirmed || reporting(commonest) > Math.max(1, reporting(rightHash)))
      rightHash = commonest;
    isConfirmed ||= reporting(rightHash) > 1;
    for (const each of all) {
      const isOther = each.genesisHash !== undefined && each.genesisHash !== rightHash;
      const isForeign = isOther && (isConfirmed || all.length === 2);
      if (isForeign && !each.isForeign) log.error({ host: each.endpoint.host }, IS_FOREIGN);
      each.isForeign = isForeign;
    }
  }

  /** Throws {@link RpcError} `cluster`. */
  function assertNotForeign(endpoint: Endpoint): void {
    if (of(endpoint).isForeign) throw new RpcError("cluster", "getGenesisHash", endpoint.host);
  }

  /** Reads the genesis hash. All callers share one read, which has its own deadline. */
  function verify(endpoint: Endpoint): Promise<void> {
    const membership = of(endpoint);
    const read = (deadline: AbortSignal) => callEndpoint(endpoint, "getGenesisHash", [], deadline);
    membership.verifying ??= withDeadline(rpcTimeoutMs, read)
      .then((genesisHash) => {
        learn(membership, genesisHash);
      })
      .finally(() => {
        membership.verifying = undefined;
      });
    return membership.verifying;
  }

  /**
   * Makes a call, and reads the genesis hash of an unverified endpoint: before the call if the call
   * sends a transaction, or if the cluster is unknown or wrong; otherwise at the same time.
   */
  async function callVerified<T>(
    endpoint: Endpoint,
    method: RpcMethod,
    call: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const { verifiedAt, genesisHash, isForeign } = of(endpoint);
    const verification =
      verifiedAt === undefined ? untilAborted(verify(endpoint), signal) : undefined;
    const isSend = method === "sendTransaction";
    try {
      if (isSend || genesisHash === undefined || isForeign) await verification;
      assertNotForeign(endpoint);
      const [result] = await Promise.all([call(), verification]);
      // In the meantime, another endpoint's report may have changed which cluster is right.
      assertNotForeign(endpoint);
      return result;
    } catch (cause) {
      throw toRpcError(cause, method, endpoint.host);
    }
  }

  return {
    verify,
    assertNotForeign,
    callVerified,

    isForeign: (endpoint: Endpoint) => of(endpoint).isForeign,

    /** Whether the genesis hash has been read since the last failure. */
    isVerified: (endpoint: Endpoint) => of(endpoint).verifiedAt !== undefined,

    /** Whether a verified endpoint's genesis hash is to be read again. */
    isDue: (endpoint: Endpoint) => msSince(of(endpoint).verifiedAt ?? LONG_AGO) >= VERIFY_AFTER_MS,

    /** Makes the endpoint unverified: after a failure, another node may answer. */
    doubt(endpoint: Endpoint): void {
      of(endpoint).verifiedAt = undefined;
    },

    /** The genesis hash that the endpoint last reported, if any. */
    hashOf: (endpoint: Endpoint) => of(endpoint).genesisHash,

    /** The cluster's genesis hash; undefined until an endpoint has answered. */
    rightHash: () => rightHash,
  };
}

/** The prefix of all keys and channels. */
export const KEY_PREFIX = "tributary:";

/**
 * The keys and channels in Redis, without the prefix. Change a key's version when the format of its
 * value changes. Keys with the same hash tag (in braces) are on one cluster node, so that one
 * script may use them.
 */
export const redisKeys = {
  /** The times of a caller's last requests. */
  rateLimit: (caller: string) => `v2:limit:${caller}`,
  /** A token bucket of a budget. */
  bucket: (budget: string, bucket: string) => `v2:bucket:{${budget}}:${bucket}`,
  account: (network: string, handle: string) => `v3:account:{${network}}:${handle}`,
  accountById: (network: string, id: string) => `v3:account-by-id:{${network}}:${id}`,
  /**
   * `claim`: who collects for an address, and with which transaction. `known`: what is known about
   * the address.
   */
  claim: (feePayer: string, address: string) => `v3:claim:{${feePayer}:${address}}`,
  known: (feePayer: string, address: string) => `v3:known:{${feePayer}:${address}}`,
  /** The slot of the newest landed collect; also the channel on which replicas announce it. */
  landedSlot: (feePayer: string) => `v2:landed-slot:${feePayer}`,
  /** The replicas that run. */
  replicas: () => "v2:replicas",
  /** The channel on which replicas tell each other what they have learned of coins. */
  coinNews: (feePayer: string) => `v3:coin-news:${feePayer}`,
  /** The deployments of the launch platform's programs that the doctor has checked. */
  platformChecks: () => "v2:platform-checks",
  /**
   * Written to check that Redis answers. In a cluster, each master is checked with a different
   * `index`.
   */
  probe: (index = 0) => `v2:probe:${index}`,
};

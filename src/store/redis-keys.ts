/** The prefix of all keys and channels. */
export const KEY_PREFIX = "tributary:";

/**
 * The names of the keys and channels in Redis, without the prefix. The version changes with the format of a value. In a
 * cluster, keys with the same hash tag, the part between braces, are on one node, so that one script may use them.
 */
export const redisKeys = {
  /** The last requests of a caller. */
  rateLimit: (caller: string) => `v2:limit:${caller}`,
  /** A bucket of a budget, of the network's calls, or of calls to the chain. */
  bucket: (budget: string, bucket: string) => `v2:bucket:{${budget}}:${bucket}`,
  account: (network: string, handle: string) => `v2:account:{${network}}:${handle}`,
  accountById: (network: string, id: string) => `v2:account-by-id:{${network}}:${id}`,
  /** `claim`: who collects an address, and with which transaction. `known`: what is known about the address. */
  claim: (feePayer: string, address: string) => `v3:claim:{${feePayer}:${address}}`,
  known: (feePayer: string, address: string) => `v3:known:{${feePayer}:${address}}`,
  /** The same two keys in releases before `v3:`. */
  earlierClaim: (feePayer: string, address: string) => `v2:collect:{${feePayer}:${address}}`,
  earlierKnown: (feePayer: string, address: string) => `v2:last-collect:{${feePayer}:${address}}`,
  /** The slot of the last collect that landed; also the channel on which replicas announce it. */
  landedSlot: (feePayer: string) => `v2:landed-slot:${feePayer}`,
  /** Written to check that Redis answers. With `index`, a key for each node of a cluster. */
  probe: (index = 0) => `v2:probe:${index}`,
};

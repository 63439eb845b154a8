import { createLruCache } from "../../store/lru-cache.ts";
import { isPoolOf } from "../launchpad/coin-addresses.ts";
import { decodePoolMints, POOL_MINTS_BYTES } from "../launchpad/fee-accounts.ts";
import { MAX_KEYS_PER_CALL } from "../rpc/read-accounts.ts";
import type { Rpc } from "../rpc/rpc-client.ts";

/** An entry takes about 250 bytes. */
const MAX_CACHED = 10_000;

/** Finds the coins of pools. A pool's coin never changes, so it is cached. */
export function createPoolMints({ rpc }: { rpc: Pick<Rpc, "readAccounts"> }) {
  /** By pool. */
  const cache = createLruCache<string, string>(MAX_CACHED);

  /**
   * Returns a function that returns the mint of one of these pools, undefined if unknown. Reads as
   * many as fit into one call, the first ones: only someone who makes many pools needs more.
   */
  return async (pools: ReadonlySet<string>): Promise<(pool: string) => string | undefined> => {
    const unknown = [...pools].filter((pool) => !cache.has(pool)).slice(0, MAX_KEYS_PER_CALL);
    if (unknown.length > 0)
      await rpc.readAccounts({
        groups: unknown.map((pool) => [pool]),
        bytes: POOL_MINTS_BYTES,
        take(i, { accounts: [account] }) {
          const pool = unknown[i]!;
          const mints = decodePoolMints(account);
          // The derivation proves the coin, whatever the account says.
          if (mints && isPoolOf(pool, mints.mint, mints.quoteMint)) cache.set(pool, mints.mint);
          return "taken";
        },
      });
    return (pool) => cache.get(pool);
  };
}

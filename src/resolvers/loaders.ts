import DataLoader from "dataloader";
import type { ReadAccount } from "../chain/accounts.ts";
import type { Account } from "../chain/rpc.ts";
import type { SocialAccount } from "../social/account.ts";
import type { Directory } from "../social/directory.ts";

export type Loaders = ReturnType<typeof createLoaders>;

/**
 * One request's loaders: whatever its fields ask for twice is read once, and all that they ask for in the
 * same moment reaches the batchers of the process together. A request that ends by `signal` gives up its
 * places there.
 */
export function createLoaders(
  { directory, readAccount }: { directory: Directory; readAccount: ReadAccount },
  signal: AbortSignal,
) {
  return {
    accountByHandle: new DataLoader<string, SocialAccount, string>(
      (handles) => directory.findByHandles(handles, signal),
      { cacheKeyFn: (handle) => handle.toLowerCase() },
    ),
    accountById: new DataLoader<string, SocialAccount>((ids) => directory.findByIds(ids, signal)),
    chainAccount: new DataLoader<string, Account>((addresses) =>
      Promise.all(
        addresses.map((address) => readAccount(address, signal).catch((error: unknown) => error as Error)),
      ),
    ),
  };
}

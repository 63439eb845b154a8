import DataLoader from "dataloader";
import type { Lamports } from "../chain/lamports.ts";
import { MAX_ACCOUNTS_A_CALL, type Rpc } from "../chain/rpc.ts";
import type { SocialAccount } from "../social/account.ts";
import type { Directory } from "../social/directory.ts";

export type Loaders = ReturnType<typeof createLoaders>;

/**
 * One request's loaders. What its fields ask for in the same moment becomes one question to the
 * directory, and calls to the chain of up to 100 accounts; whatever is asked twice is read once.
 */
export function createLoaders({ directory, rpc }: { directory: Directory; rpc: Rpc }) {
  return {
    accountByHandle: new DataLoader<string, SocialAccount, string>(
      (handles) => directory.findByHandles(handles),
      {
        cacheKeyFn: (handle) => handle.toLowerCase(),
      },
    ),
    accountById: new DataLoader<string, SocialAccount>((ids) => directory.findByIds(ids)),
    lamports: new DataLoader<string, Lamports>((addresses) => rpc.getBalances(addresses), {
      maxBatchSize: MAX_ACCOUNTS_A_CALL,
    }),
  };
}

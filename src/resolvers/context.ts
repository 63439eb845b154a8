import type { CollectFees } from "./collect-fees.ts";
import type { LookUpWallet } from "./look-up-wallet.ts";
import type { ReadBalance } from "./read-balance.ts";
import type { ReadHistory } from "./read-history.ts";
import type { RequestScope } from "./request-scope.ts";
import type { WatchWallet } from "./watch-wallet.ts";
import type { WalletById } from "./wallet-by-id.ts";

/** The functions that the schema's fields call. */
export interface UseCases {
  readonly lookUpWallet: LookUpWallet;
  readonly walletById: WalletById;
  readonly readBalance: ReadBalance;
  readonly collectFees: CollectFees;
  readonly readHistory: ReadHistory;
  readonly watchWallet: WatchWallet;
}

/** GraphQL's context: the use cases, and the request that they run for. */
export interface Context {
  readonly useCases: UseCases;
  readonly scope: RequestScope;
}

import type { Collector } from "../chain/collect/collector.ts";
import type { CollectOutcome } from "../chain/collect/landed-outcome.ts";
import type { LiveBalances } from "../chain/live/live-balances.ts";
import { toCollectContractError } from "../chain/to-contract-error.ts";
import { inSpan } from "../observability/tracing.ts";
import type { Mints } from "./named-coins.ts";
import type { RequestScope } from "./request-scope.ts";
import type { WalletById } from "./wallet-by-id.ts";
import { toWalletWithCoins, type Wallet } from "./wallet.ts";

/** The outcome of a collect, and the account's wallet. */
export type CollectResult = CollectOutcome & { readonly wallet: Wallet };

/**
 * Moves an account's fees from its vaults, and from the coins with these mints, to its address. Any caller may do so;
 * the service pays. Rejects with INVALID_SOCIAL_ID, INVALID_MINT, INSUFFICIENT_FUNDS or COLLECT_FAILED.
 */
export type CollectFees = (socialId: string, scope: RequestScope, mints?: Mints) => Promise<CollectResult>;

export function createCollectFees(needs: {
  walletById: WalletById;
  collector: Collector;
  live: Pick<LiveBalances, "refresh">;
}): CollectFees {
  const { walletById, collector, live } = needs;
  return (socialId, { addressBlock, startedAt, loaders, log }, mints) =>
    inSpan("collectFees", async () => {
      const wallet = walletById(socialId, mints);
      try {
        const outcome = await collector.collect(toWalletWithCoins(wallet), addressBlock, startedAt, log);
        return { ...outcome, wallet };
      } catch (error) {
        throw toCollectContractError(error);
      } finally {
        loaders.clearBalances();
        live.refresh(wallet.addresses);
      }
    });
}

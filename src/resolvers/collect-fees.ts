import type { Collector } from "../chain/collect/collector.ts";
import type { CollectOutcome } from "../chain/collect/landed-outcome.ts";
import { toContractError } from "../chain/to-contract-error.ts";
import { inSpan } from "../observability/tracing.ts";
import type { RequestScope } from "./request-scope.ts";
import type { WalletById } from "./wallet-by-id.ts";

/**
 * Moves an account's fees from its vaults to its address. Any caller may do so; the service pays.
 * Rejects with INVALID_SOCIAL_ID, INSUFFICIENT_FUNDS or COLLECT_FAILED.
 */
export type CollectFees = (socialId: string, scope: RequestScope) => Promise<CollectOutcome>;

export function createCollectFees(needs: { walletById: WalletById; collector: Collector }): CollectFees {
  const { walletById, collector } = needs;
  return (socialId, { startedAt }) =>
    inSpan("collectFees", {}, async () => {
      const { addresses } = walletById(socialId);
      try {
        return await collector.collect(addresses, startedAt);
      } catch (error) {
        throw toContractError(error, "COLLECT_FAILED");
      }
    });
}

import type { Collector } from "../chain/collect/collector.ts";
import type { CollectOutcome } from "../chain/collect/landed-outcome.ts";
import type { LiveBalances } from "../chain/live/live-balances.ts";
import { toCollectContractError } from "../chain/to-contract-error.ts";
import { inSpan } from "../observability/tracing.ts";
import type { CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import type { Mints, NamedCoins } from "./named-coins.ts";
import type { RequestScope } from "./request-scope.ts";
import type { WalletById } from "./wallet-by-id.ts";
import type { Wallet } from "./wallet.ts";

/** The outcome of a collect, the account's wallet, and the coins that the caller named. */
export type CollectResult = CollectOutcome & {
  readonly wallet: Wallet;
  readonly named: readonly CoinAddresses[];
};

/**
 * Moves an account's fees from its vaults, and from the coins with these mints, to its address. Any caller may do so;
 * the service pays. Rejects with INVALID_SOCIAL_ID, INVALID_MINT, INSUFFICIENT_FUNDS or COLLECT_FAILED.
 */
export type CollectFees = (socialId: string, scope: RequestScope, mints?: Mints) => Promise<CollectResult>;

export function createCollectFees(needs: {
  walletById: WalletById;
  namedCoins: NamedCoins;
  collector: Collector;
  live: Pick<LiveBalances, "refresh">;
}): CollectFees {
  const { walletById, namedCoins, collector, live } = needs;
  return (socialId, { addressBlock, visitorBlock, startedAt, loaders, log }, mints) =>
    inSpan("collectFees", async () => {
      const wallet = walletById(socialId);
      const named = namedCoins(mints);
      const requested = { account: wallet.addresses, coins: named };
      try {
        const outcome = await collector.collect(requested, { addressBlock, visitorBlock }, startedAt, log);
        return { ...outcome, wallet, named };
      } catch (error) {
        throw toCollectContractError(error);
      } finally {
        loaders.clearBalances();
        live.refresh(wallet.addresses);
      }
    });
}

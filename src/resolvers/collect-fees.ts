import type { CollectOutcome } from "../chain/collect/collector.ts";
import { inSpan } from "../observability/tracing.ts";
import type { RequestContext } from "./context.ts";
import { walletOfId } from "./look-up-wallet.ts";

/**
 * Moves what waits in an account's vault to its address, at the service's expense, whoever asks.
 *
 * @throws {ContractError} INVALID_SOCIAL_ID, INSUFFICIENT_FUNDS, COLLECT_FAILED
 */
export async function collectFees(socialId: string, context: RequestContext): Promise<CollectOutcome> {
  return inSpan("collectFees", {}, () =>
    context.collector.collect(walletOfId(socialId, context).addresses, context.startedAt),
  );
}

import type { CollectOutcome } from "../chain/collect/in-flight-collect.ts";
import { toContractError } from "../chain/to-contract-error.ts";
import { ContractError } from "../contract/errors.ts";
import { inSpan } from "../observability/tracing.ts";
import type { RequestContext } from "./context.ts";
import { walletOfId } from "./look-up-wallet.ts";

/**
 * Moves what waits in an account's vault to its address, at the service's expense, whoever asks.
 *
 * @throws {ContractError} INVALID_SOCIAL_ID, INSUFFICIENT_FUNDS, COLLECT_FAILED
 */
export async function collectFees(socialId: string, context: RequestContext): Promise<CollectOutcome> {
  return inSpan("collectFees", {}, async () => {
    const { addresses } = walletOfId(socialId, context);
    try {
      return await context.collector.collect(addresses, context.startedAt);
    } catch (error) {
      const { code, message, cause } = toContractError(error, "COLLECT_FAILED");
      throw new ContractError(code, { message, cause });
    }
  });
}

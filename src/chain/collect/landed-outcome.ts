import type { Logger } from "../../observability/log.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { Balances } from "../balances.ts";
import type { CoinFindings } from "../coin-findings.ts";
import { CollectError } from "../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../lamports.ts";
import { isFeePayerShort, isReceiverBelowRent } from "../rpc/transaction-error.ts";
import type { WaitingFees } from "../choose-sweeps.ts";
import type { Claim, Landing, LastCollect, StoredTransaction } from "./claims.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { CoinBackoff } from "./coin-backoff.ts";
import type { SignedCollect } from "./prepare/planner.ts";
import type { Confirmation } from "./send-and-confirm.ts";
import type { CountedTransaction, Landed } from "./transaction-outcome.ts";

/** The result of a collect: the fees that a landed transaction moved, or nothing to collect. */
export type CollectOutcome =
  | {
      readonly kind: "collected";
      /** The lamports that the transaction moved to the address. */
      readonly collected: Lamports;
      /** The withdrawable lamports at the address right after the transaction. */
      readonly newBalance: Lamports;
      readonly signature: string;
      /** The coins' fees that the transaction did not move, but that another collect would. */
      readonly remaining: readonly WaitingFees[];
    }
  | {
      readonly kind: "nothing";
      /** What a transaction would move, if that is less than the caller's minimum. */
      readonly belowMinimum?: Lamports | undefined;
      /** How many more lamports of fees the address needs to become rent-exempt, if any. */
      readonly missing?: Lamports | undefined;
      /** The account's last collect, if within the last hour. */
      readonly lastCollect?: LastCollect | undefined;
    };

/** A landed transaction and one of its accounts. */
interface LandedForAccount {
  readonly account: AccountAddresses;
  /** The account's claim, which is settled once the outcome is read. */
  readonly claim: Claim;
  readonly transaction: StoredTransaction;
  readonly outcome: Landed;
  /** Limits the read of the transaction's amounts. */
  readonly timeoutMs: number;
  /**
   * Set if this replica signed the transaction. `block`: the address block that requested the
   * coins.
   */
  readonly signed?: (SignedCollect & { readonly block: string | undefined }) | undefined;
}

/** Returns a function that reads what a landed transaction did for an account. */
export function createReadOutcome(needs: {
  readLanded: Confirmation["readLanded"];
  balances: Pick<Balances, "getUnwithdrawable">;
  backoff: CoinBackoff;
  findings: Pick<CoinFindings, "found">;
  feePayer: string;
  metrics: CollectMetrics;
}) {
  const { readLanded, balances, backoff, findings, feePayer, metrics } = needs;

  async function toOutcome(
    { account, transaction: { signature }, signed }: LandedForAccount,
    landed: CountedTransaction | undefined,
    landing: Landing,
    log: Logger,
  ): Promise<CollectOutcome> {
    const { address } = account;
    const { before, after } = landed?.balances.get(address) ?? {};
    const readUnwithdrawable = () => balances.getUnwithdrawable(account).catch(() => undefined);
    const unwithdrawable = landed && (signed?.unwithdrawable ?? (await readUnwithdrawable()));
    if (before === undefined || after === undefined || unwithdrawable === undefined)
      throw new CollectError({ kind: "landed-unreadable", signature });
    const collected = saturatingSubtract(after, before);
    if (signed) metrics.collected(collected);
    log.info({ signature, address, lamports: collected.toString() }, "collected");
    // Anyone may collect directly on the chain, and may have moved the fees to this address first.
    if (collected <= 0n) return { kind: "nothing" };
    const newBalance = saturatingSubtract(after, unwithdrawable);
    const at = toTime(landed?.blockTime, signed ? new Date() : undefined);
    if (at) landing.collect = { collected, newBalance, signature, at };
    return {
      kind: "collected",
      collected,
      newBalance,
      signature,
      remaining: signed?.remaining ?? [],
    };
  }

  /**
   * Counts a landed transaction's fee and rent in the metrics, and corrects the rent in the budget.
   */
  function countCosts(signed: SignedCollect, landed: CountedTransaction | undefined): void {
    // A failed transaction also costs its fee. The signed fee is the maximum, so ignore a node that
    // reports more.
    metrics.paid(landed && landed.fee < signed.fee ? landed.fee : signed.fee);
    if (!signed.transaction.sweptMints || !landed) return;
    const rent = toRent(landed);
    if (rent === undefined) return;
    // A program may have taken more than it did in the simulation, but one endpoint of several must
    // not use up the budget.
    const isOverstated = rent > signed.signedRent && !landed.isCertain;
    const counted = isOverstated ? signed.signedRent : rent;
    signed.correctRent(counted);
    metrics.paid(counted);
  }

  /** Returns what the fee payer lost besides the fee; undefined if the node does not say. */
  function toRent({ balances, fee }: CountedTransaction): Lamports | undefined {
    const { before, after } = balances.get(feePayer) ?? {};
    if (before === undefined || after === undefined) return undefined;
    return saturatingSubtract(before, toLamports(after + fee));
  }

  /**
   * Settles the account's claim with the outcome. Uses `outcome.err` only if the transaction itself
   * cannot be read. Without an error that the endpoints agree on, nothing backs off. Returns
   * `failed-together` if a transaction of several accounts failed: any account may be the reason.
   * Throws {@link CollectError} `fee-payer-short`, `failed-on-chain` or `landed-unreadable`.
   */
  return async (
    all: LandedForAccount,
    log: Logger,
  ): Promise<CollectOutcome | "failed-together"> => {
    const { account, claim, transaction, outcome, timeoutMs, signed } = all;
    const { address } = account;
    const { signature } = transaction;
    const landing: Landing = { slot: outcome.slot };
    try {
      const landed = outcome.transaction ?? (await readLanded(transaction, outcome, timeoutMs));
      const err = landed ? landed.err : outcome.err;
      if (signed) countCosts(signed, landed);
      if (landed) signed?.usedUnits(landed.unitsConsumed);
      const { sweptMints: mints = [] } = transaction;
      if (err === undefined) throw new CollectError({ kind: "landed-unreadable", signature });
      if (err === null) {
        // Only the account's own transactions end its backoff, not another account's distribution.
        if (signed || claim.openTransaction) landing.hasFailed = false;
        backoff.succeeded(address, mints);
        const feePayerBalance = landed?.balances.get(feePayer)?.after;
        if (signed && feePayerBalance !== undefined) metrics.setBalance(feePayerBalance);
        return await toOutcome(all, landed, landing, log);
      }
      log.warn({ signature, address, error: err }, "a collect's transaction failed");
      if (isFeePayerShort(err)) {
        const detail = `transaction ${signature} failed on the chain: ${JSON.stringify(err)}`;
        throw new CollectError({ kind: "fee-payer-short", detail });
      }
      const culprits = signed?.findCulprits(err) ?? [];
      if (transaction.isShared) return "failed-together";
      if (mints.length > 0) backoff.coinsFailed(address, mints, { culprits, block: signed?.block });
      else landing.hasFailed = true;
      // Only this error proves that a shareholder is at fault. Other errors may mean that
      // distributions were paused.
      if (isReceiverBelowRent(err))
        for (const mint of culprits) findings.found(mint, "SHAREHOLDER_BLOCKED");
      const named = culprits.length > 0 ? culprits : mints;
      throw new CollectError({
        ...{ kind: "failed-on-chain", signature, err, mints: named.length > 0 ? named : undefined },
      });
    } finally {
      claim.settle(landing);
    }
  };
}

/**
 * Converts a block's time (seconds since 1970), capped at now. Returns `ifUnknown` if the time is
 * unknown.
 */
function toTime(blockTime: number | undefined, ifUnknown: Date | undefined): Date | undefined {
  return blockTime === undefined
    ? ifUnknown
    : new Date(Math.max(0, Math.min(blockTime * 1000, Date.now())));
}

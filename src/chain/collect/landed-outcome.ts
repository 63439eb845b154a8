import type { Logger } from "../../observability/log.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { Balances } from "../balances.ts";
import type { CoinFindings } from "../coin-findings.ts";
import type { LandedTransaction } from "../rpc/transactions.ts";
import { CollectError } from "../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../lamports.ts";
import { isFeePayerShort, isReceiverBelowRent } from "../rpc/transaction-error.ts";
import type { WaitingFees } from "../sweeps.ts";
import type { Claim, Landing, LastCollect, StoredTransaction } from "./claims.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { CoinBackoff } from "./coin-backoff.ts";
import type { SignedCollect } from "./prepare/plan.ts";
import { hasAccount, type createConfirmation, type Landed } from "./send-and-confirm.ts";

/** The result of a collect: the fees that a landed transaction moved, or nothing to collect. */
export type CollectOutcome =
  | {
      readonly kind: "collected";
      /** The lamports that the transaction moved to the address. */
      readonly collected: Lamports;
      /** The withdrawable lamports at the address right after the transaction. */
      readonly newBalance: Lamports;
      readonly signature: string;
      /** The fees that still wait on coins that the collect was about, and that another collect would move. */
      readonly remaining: readonly WaitingFees[];
    }
  | {
      readonly kind: "nothing";
      /** What is missing until the address can receive the fees; undefined if that is not the reason. */
      readonly missing?: Lamports | undefined;
      /** The account's last collect, if within the last hour. */
      readonly lastCollect?: LastCollect | undefined;
    };

/** A transaction of another collect, which landed before this collect signed its own. */
export interface EarlierTransaction {
  readonly transaction: StoredTransaction;
  readonly landed: Landed;
  /** Whether it landed after the collect's first caller asked. */
  readonly isCurrent: boolean;
}

/** What is known of a transaction that this replica signed. */
interface Own extends Omit<SignedCollect, "transaction" | "isStoredForAll" | "close"> {
  /** The address block that asked for its coins. */
  readonly block: string | undefined;
}

type ReadLanded = ReturnType<typeof createConfirmation>["readLanded"];

/** Reads what landed transactions moved. */
export function createLandedOutcome(needs: {
  readLanded: ReadLanded;
  balances: Balances;
  backoff: CoinBackoff;
  findings: Pick<CoinFindings, "found">;
  /** The fee payer's address. */
  feePayer: string;
  metrics: CollectMetrics;
  /** How long the amounts of a landed transaction may take to read. */
  collectTimeoutMs: number;
  log: Logger;
}) {
  const { readLanded, balances, backoff, findings, feePayer, metrics, collectTimeoutMs, log } = needs;

  async function toOutcome(
    account: AccountAddresses,
    signature: string,
    landed: LandedTransaction | undefined,
    landing: Landing,
    own?: Own,
  ): Promise<CollectOutcome> {
    const { address } = account;
    const { before, after } = landed?.balances.get(address) ?? {};
    if (before === undefined || after === undefined) {
      throw new CollectError({ kind: "landed-unreadable", signature });
    }
    const unwithdrawable =
      own?.unwithdrawable ?? (await balances.getUnwithdrawable(account).catch(() => undefined));
    if (unwithdrawable === undefined) throw new CollectError({ kind: "landed-unreadable", signature });
    const collected = saturatingSubtract(after, before);
    if (own) metrics.collected(collected);
    log.info({ signature, address, lamports: collected.toString() }, "collected");
    // Anyone may collect directly on the chain, and may have moved the fees to this address first.
    if (collected <= 0n) return { kind: "nothing" };
    const newBalance = saturatingSubtract(after, unwithdrawable);
    landing.collect = { collected, newBalance, signature, at: toTime(landed?.blockTime) };
    return { kind: "collected", collected, newBalance, signature, remaining: own?.remaining ?? [] };
  }

  /** Counts what a landed transaction cost. */
  function countCosts(own: Own, landed: LandedTransaction | undefined): void {
    // A failed transaction also costs its fee. The signed fee is the maximum, so ignore a node that reports more.
    metrics.paid(landed && landed.fee < own.fee ? landed.fee : own.fee);
    const { before, after } = landed?.balances.get(feePayer) ?? {};
    if (!own.hasSweeps || !landed || before === undefined || after === undefined) return;
    const rent = saturatingSubtract(before, toLamports(after + landed.fee));
    own.correctRent(rent);
    metrics.paid(rent);
  }

  return {
    /**
     * The outcome of a transaction that landed; settles its claim. Its `err` counts only if the transaction itself cannot
     * be read. `own` is undefined when another replica signed it: that replica counts the fee, and can name the coins that
     * made it fail. `failed-together`: it failed and was about several accounts; any of them may be the reason. Throws
     * {@link CollectError} `fee-payer-short`, `failed-on-chain` or `landed-unreadable`.
     */
    async read(
      account: AccountAddresses,
      claim: Claim,
      transaction: StoredTransaction,
      outcome: Landed,
      own?: Own,
    ): Promise<CollectOutcome | "failed-together"> {
      const { address } = account;
      const { signature } = transaction;
      const landing: Landing = { slot: outcome.slot };
      try {
        const landed = outcome.transaction ?? (await readLanded(transaction, collectTimeoutMs));
        const err = landed ? landed.err : outcome.err;
        if (own) countCosts(own, landed);
        const mints = toMints(transaction);
        if (err === null) {
          landing.hasFailed = false;
          backoff.succeeded(address, mints);
          const feePayerBalance = landed?.balances.get(feePayer)?.after;
          if (feePayerBalance !== undefined) metrics.setBalance(feePayerBalance);
          return await toOutcome(account, signature, landed, landing, own);
        }
        log.warn({ signature, address, error: err }, "a collect's transaction failed");
        if (isFeePayerShort(err)) {
          const detail = `transaction ${signature} failed on the chain: ${JSON.stringify(err)}`;
          throw new CollectError({ kind: "fee-payer-short", detail });
        }
        if (transaction.isShared) return "failed-together";
        const culprits = own?.findCulprits(err) ?? [];
        if (mints.length > 0) backoff.coinsFailed(address, mints, { culprits, block: own?.block });
        else landing.hasFailed = true;
        // Otherwise the sharing may have been paused meanwhile.
        if (isReceiverBelowRent(err))
          for (const mint of culprits) findings.found(mint, "SHAREHOLDER_BLOCKED");
        const named = culprits.length > 0 ? culprits : mints;
        throw new CollectError({
          kind: "failed-on-chain",
          signature,
          err,
          mints: named.length > 0 ? named : undefined,
        });
      } finally {
        claim.settle(landing);
      }
    },

    /**
     * The outcome of an earlier transaction, if nothing else waits: `nothing`, unless it is current. Reads until `endsAt`,
     * a `performance.now()` time. Records in the account's claim what it moved. Throws {@link CollectError}
     * `landed-unreadable`.
     */
    async readEarlier(
      account: AccountAddresses,
      claim: Claim,
      { transaction, landed: { err, slot, transaction: known }, isCurrent }: EarlierTransaction,
      endsAt: number,
    ): Promise<CollectOutcome> {
      const landed = known ?? (await readLanded(transaction, endsAt - performance.now()));
      // A distribution may have been signed before the account was one of those that share the fees.
      const isSuccess = (landed ? landed.err : err) === null && hasAccount(transaction, account.address);
      if (!isSuccess || (!isCurrent && landed?.blockTime === undefined)) return { kind: "nothing" };
      const landing: Landing = { slot };
      try {
        const outcome = await toOutcome(account, transaction.signature, landed, landing);
        return isCurrent ? outcome : { kind: "nothing" };
      } catch (error) {
        // It may have paid the account. One that is not current is read only to remember it.
        if (isCurrent) throw error;
        return { kind: "nothing" };
      } finally {
        if (landing.collect) claim.settle(landing);
      }
    },
  };
}

/** The mints of the coins that a transaction sweeps, each once. */
function toMints({ sweptMints = [] }: StoredTransaction): string[] {
  return [...new Set(sweptMints.filter((mint) => mint !== null))];
}

/** A block's time, in seconds since 1970; now if it is unknown, or ahead of this machine's clock. */
function toTime(blockTime: number | undefined): Date {
  const now = Date.now();
  return new Date(Math.max(0, Math.min((blockTime ?? Infinity) * 1000, now)));
}

import type { Logger } from "../../observability/log.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { Balances } from "../balances.ts";
import type { CoinFindings } from "../coin-findings.ts";
import type { LandedTransaction } from "../rpc/transactions.ts";
import { CollectError } from "../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../lamports.ts";
import { isFeePayerShort, isReceiverBelowRent } from "../rpc/transaction-error.ts";
import type { WaitingFees } from "../sweeps.ts";
import type { StoredTransaction } from "./locks/account-lock.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { FailureBackoff } from "./failure-backoff.ts";
import type { LastCollect, LastCollects } from "./last-collects.ts";
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

/** A transaction that another replica stored, and that landed before this collect signed its own. */
export interface EarlierTransaction extends StoredTransaction {
  /** Undefined if it is still to be read. */
  readonly landed: LandedTransaction | undefined;
  /** Whether it landed successfully, as far as its status says. */
  readonly isSuccess: boolean;
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
  backoff: FailureBackoff;
  findings: Pick<CoinFindings, "found">;
  lastCollects: LastCollects;
  /** The fee payer's address. */
  feePayer: string;
  metrics: CollectMetrics;
  /** How long the amounts of a landed transaction may take to read. */
  timeoutMs: number;
  log: Logger;
}) {
  const { readLanded, balances, backoff, findings, lastCollects, feePayer, metrics, timeoutMs, log } = needs;

  async function toOutcome(
    account: AccountAddresses,
    signature: string,
    landed: Awaited<ReturnType<ReadLanded>>,
    own: Own | undefined,
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
    lastCollects.record(address, { collected, newBalance, signature, at: toTime(landed?.blockTime) });
    return { kind: "collected", collected, newBalance, signature, remaining: own?.remaining ?? [] };
  }

  /** Counts what a landed transaction cost. */
  function countCosts(own: Own, landed: Awaited<ReturnType<ReadLanded>>): void {
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
     * The outcome of a transaction that landed. Its `err` counts only if the transaction itself cannot be read. `own` is
     * undefined when another replica signed it: that replica counts the fee, and can name the coins that made it fail.
     * `failed-together`: it failed and was about several accounts; any of them may be the reason. Throws
     * {@link CollectError} `fee-payer-short`, `failed-on-chain` or `landed-unreadable`.
     */
    async read(
      account: AccountAddresses,
      transaction: StoredTransaction,
      outcome: Landed,
      own: Own | undefined,
    ): Promise<CollectOutcome | "failed-together"> {
      const { address } = account;
      const { signature } = transaction;
      const landed = outcome.transaction ?? (await readLanded(transaction, timeoutMs));
      const err = landed ? landed.err : outcome.err;
      if (own) countCosts(own, landed);
      if (err !== null) {
        log.warn({ signature, address, error: err }, "a collect's transaction failed");
        if (isFeePayerShort(err)) {
          const detail = `transaction ${signature} failed on the chain: ${JSON.stringify(err)}`;
          throw new CollectError({ kind: "fee-payer-short", detail });
        }
        if (transaction.isShared) return "failed-together";
        const mints = toMints(transaction);
        const culprits = own?.findCulprits(err) ?? [];
        if (mints.length > 0) backoff.coinsFailed(address, mints, { culprits, block: own?.block });
        else backoff.failed(address);
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
      }
      backoff.succeeded(address, toMints(transaction));
      const feePayerBalance = landed?.balances.get(feePayer)?.after;
      if (feePayerBalance !== undefined) metrics.setBalance(feePayerBalance);
      return toOutcome(account, signature, landed, own);
    },

    /**
     * The outcome of an earlier transaction that has landed, if nothing else waits: `nothing`, unless it is current. Reads until `endsAt`, a `performance.now()` time. Throws {@link CollectError}
     * `landed-unreadable`.
     */
    async readEarlier(
      account: AccountAddresses,
      transaction: EarlierTransaction,
      endsAt: number,
    ): Promise<CollectOutcome> {
      const landed = transaction.landed ?? (await readLanded(transaction, endsAt - performance.now()));
      // A distribution may have been signed before the account was one of those that share the fees.
      if (!hasAccount(transaction, account.address)) return { kind: "nothing" };
      const { signature, isCurrent, isSuccess } = transaction;
      // Throws if it cannot be read: it may have paid the account.
      if (isCurrent && (landed ? landed.err === null : isSuccess))
        return toOutcome(account, signature, landed, undefined);
      // Read only to remember it, so a failure is no reason to fail.
      if (landed?.err === null && landed.blockTime !== undefined)
        await toOutcome(account, signature, landed, undefined).catch(() => undefined);
      return { kind: "nothing" };
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

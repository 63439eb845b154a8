import type { Logger } from "../../observability/log.ts";
import type { Balances } from "../balances.ts";
import type { Floors } from "../slots/floors.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import type { WalletWithCoins } from "../wallets.ts";
import type { AccountLocks, Lease, StoredTransaction } from "./locks/account-lock.ts";
import { COLLECT_FAILURES, CollectError } from "../collect-error.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { LastCollects } from "./last-collects.ts";
import { createConfirmation, type ConfirmationWaits, type TransactionOutcome } from "./send-and-confirm.ts";
import type { FailureBackoff } from "./failure-backoff.ts";
import type { Payers } from "./fee-budget.ts";
import type { FeePayer } from "./fee-payer.ts";
import type { CoinFindings } from "../coin-findings.ts";
import { createLandedOutcome, type CollectOutcome, type EarlierTransaction } from "./landed-outcome.ts";
import { assertInTime, type SignedCollect } from "./prepare/sign-alone.ts";
import { createPrepareCollect } from "./prepare/prepare-collect.ts";
import type { Prospects } from "./prepare/prospect.ts";
import type { SimulateAlone } from "./prepare/simulate-alone.ts";
import type { Simulator } from "./prepare/simulator.ts";
import type { Composer } from "./message/composer.ts";
import { POLL_MS } from "./signature-poller.ts";

/** A collect, from its first read until the outcome of its transaction is known. No caller can cancel it. */
export interface InFlightCollect {
  /** Rejects with {@link CollectError}, {@link RpcError}, or an error that marks a bug. */
  readonly outcome: Promise<CollectOutcome>;
  /** The mints of the coins that it has left out so far, because they fail or cost too much. */
  readonly leftOut: ReadonlySet<string>;
  /** The signature of its transaction, once it is sent. */
  signature(): string | undefined;
  /** The error for a caller who times out now. */
  timeoutError(): CollectError;
}

/** The progress of a collect, which decides the error for a caller who times out. */
type Progress =
  /** No transaction is in flight. One that is being stored may turn out not to be sent. */
  | { readonly kind: "preparing" }
  /** Sent by this replica or another. It may land at any moment, or its outcome is `unknown`. */
  | { readonly kind: "sent"; readonly signature: string }
  /** Confirmed; its amounts are being read. */
  | { readonly kind: "landed"; readonly signature: string };

/** The services that collects use. Only `feePayer` holds the key. */
export interface CollectNeeds extends ConfirmationWaits {
  rpc: Rpc;
  balances: Balances;
  prospects: Prospects;
  simulator: Simulator;
  simulateAlone: SimulateAlone;
  priceFloor: bigint;
  composer: Composer;
  feePayer: FeePayer;
  locks: AccountLocks;
  lastCollects: LastCollects;
  backoff: FailureBackoff;
  findings: Pick<CoinFindings, "found">;
  floors: Floors;
  /** Tells the other replicas in which slot an account's transaction landed. */
  announceLanded: (address: string, slot: number) => void;
  metrics: CollectMetrics;
  /**
   * How long a caller waits, from its request; how long a collect may take to sign, from its own start; and how
   * long the amounts of a landed transaction may take to read.
   */
  timeoutMs: number;
  log: Logger;
}

/** One endpoint alone may lie about an expired transaction, to raise spending. */
const ENDPOINTS_FOR_REFUND = 2;

/**
 * Returns a function that starts a collect of an account and its coins, at the expense of the first of the payers whose
 * part of the fee budget is enough. `block`: the address block that named the coins. `log` is that of the request that
 * starts it. Start at most one per account at a time.
 */
export function createStartCollect(needs: CollectNeeds) {
  const { feePayer, locks, lastCollects, backoff, floors, announceLanded, timeoutMs } = needs;
  const { pollMs = POLL_MS } = needs;
  const { confirm, findLanded, readLanded } = createConfirmation(needs);
  const prepare = createPrepareCollect({ ...needs, pollMs });
  const feePayerAddress = feePayer.publicKey.toBase58();

  return (
    wallet: WalletWithCoins,
    payers: Payers,
    block: string | undefined,
    log = needs.log,
  ): InFlightCollect => {
    const { account, coins } = wallet;
    const { address } = account;
    const landedOutcome = createLandedOutcome({ ...needs, readLanded, feePayer: feePayerAddress, log });
    const endsAt = performance.now() + timeoutMs;
    const leftOut = new Set<string>();
    let progress: Progress = { kind: "preparing" };
    /** Set after a transaction of several accounts has failed. */
    let isAlone = false;

    /** Follows another collect's distribution to its end; undefined unless it pays this account. */
    async function followDistribution(
      lease: Lease,
      transaction: StoredTransaction,
    ): Promise<EarlierTransaction | undefined> {
      const { landed } = await findLanded(transaction).catch(() => ({ landed: undefined }));
      if (landed) {
        floors.require(address, landed.slot);
        lease.release(landed.slot);
      }
      const outcome = landed ?? (await land(lease, transaction));
      progress = { kind: "preparing" };
      if (outcome.kind !== "landed" || outcome.err !== null) return undefined;
      return { ...transaction, landed: outcome.transaction, wasInFlight: !landed || !lease.isEarlier };
    }

    async function run(): Promise<CollectOutcome> {
      let earlier: EarlierTransaction | undefined;
      let hasMovedNothing = false;
      /** Whether another replica took the lock from this collect: what it signed, it signed after the caller asked. */
      let wasTaken = false;
      for (;;) {
        assertInTime(endsAt);
        const lease = await locks.acquire(address, endsAt);
        floors.require(address, lease.landedSlot);

        const { openTransaction } = lease;
        if (openTransaction) {
          const { isEarlier } = lease;
          const found = isEarlier ? await findLanded(openTransaction) : undefined;
          if (found?.landed) {
            floors.require(address, found.landed.slot);
            lease.release(found.landed.slot);
            earlier = { ...openTransaction, landed: found.landed.transaction, wasInFlight: wasTaken };
            continue;
          }
          const outcome = await land(lease, openTransaction);
          if (outcome.kind !== "landed") continue;
          if (outcome.err !== null || (!isEarlier && coins.length === 0)) {
            const result = await landedOutcome.read(account, openTransaction, outcome, undefined);
            if (result !== "failed-together") return result;
            collectAlone();
            continue;
          }
          // It may have landed before this collect began, or without these coins: collect what waits now.
          const wasInFlight = wasTaken || !found || outcome.slot >= found.slot;
          earlier = { ...openTransaction, landed: outcome.transaction, wasInFlight };
          progress = { kind: "preparing" };
          continue;
        }

        const prepared = await prepare({ wallet, payers, block, leftOut, endsAt, isAlone }).catch(
          (error: unknown) => {
            lease.release();
            throw error;
          },
        );
        if (prepared.kind === "other") {
          lease.release();
          earlier = (await followDistribution(prepared.lease, prepared.transaction)) ?? earlier;
          continue;
        }
        if (prepared.kind === "nothing") {
          lease.release();
          // The transaction that this collect followed may have moved everything.
          if (progress.kind === "sent")
            throw new CollectError({ kind: "unknown", signature: progress.signature });
          return earlier ? landedOutcome.readEarlier(account, earlier, endsAt) : prepared;
        }
        const { signed, distributions } = prepared;
        const { transaction } = signed;
        if (!(await storeToSend(lease, signed))) {
          signed.close({ refund: !transaction.isShared }); // Another of its accounts may send it.
          distributions.release();
          wasTaken ||= lease.isInRedis;
          continue;
        }
        await distributions.store(transaction);
        const outcome = await land(lease, transaction);
        signed.close({ refund: outcome.kind === "expired" && outcome.agreeing >= ENDPOINTS_FOR_REFUND });
        if (outcome.kind !== "landed") {
          backoff.expired(distributions.mints());
          distributions.release();
          throw new CollectError({ kind: outcome.kind, signature: transaction.signature });
        }
        // After a failure, the collects that wait must see that the coin backs off.
        const result = await landedOutcome
          .read(account, transaction, outcome, { ...signed, block })
          .finally(() => {
            distributions.release(outcome.slot);
          });
        if (result === "failed-together") collectAlone();
        else if (result.kind === "nothing" && coins.length > 0 && !hasMovedNothing) {
          // Someone else collected first. Fees may have arrived on the coins after they were read: read them again.
          hasMovedNothing = true;
          progress = { kind: "preparing" };
        } else return result;
      }
    }

    /**
     * Stores a signed transaction under the lock of each of its accounts. False if it must not be sent: another replica
     * has acquired one of the locks.
     */
    async function storeToSend(lease: Lease, signed: SignedCollect): Promise<boolean> {
      const isStored = await lease.store(signed.transaction);
      if (await signed.isStoredForAll(isStored)) return true;
      if (!isStored) return false;
      // A replica that waits for this lock may have received the transaction, and sends it: then it is in flight.
      return !(await lease.withdraw());
    }

    function collectAlone(): void {
      isAlone = true;
      progress = { kind: "preparing" };
    }

    /** Sends a stored transaction until it has landed or no longer can; then releases the lock. */
    async function land(lease: Lease, transaction: StoredTransaction): Promise<TransactionOutcome> {
      const { signature } = transaction;
      progress = { kind: "sent", signature };
      const outcome = await confirm(transaction, { maybeSent: lease.openTransaction !== undefined });
      if (outcome.kind === "landed") {
        // Its coins too: all who share their fees see them.
        const swept = coins.filter(({ mint }) => transaction.sweptMints?.includes(mint));
        for (const changed of [address, ...swept.map(({ curve }) => curve)]) {
          floors.require(changed, outcome.slot);
          announceLanded(changed, outcome.slot);
        }
        lease.release(outcome.slot);
        progress = { kind: "landed", signature };
        return outcome;
      }
      lease.release();
      if (outcome.kind === "expired") progress = { kind: "preparing" };
      log.warn({ signature, address }, COLLECT_FAILURES[outcome.kind].hint);
      return outcome;
    }

    return {
      outcome: run().then(async (outcome) =>
        outcome.kind === "nothing" ? { ...outcome, lastCollect: await lastCollects.read(address) } : outcome,
      ),
      leftOut,
      signature: () => (progress.kind === "preparing" ? undefined : progress.signature),
      timeoutError() {
        if (progress.kind === "landed")
          return new CollectError({ kind: "landed-unreadable", signature: progress.signature });
        const signature = progress.kind === "sent" ? progress.signature : undefined;
        return new CollectError({ kind: "still-running", signature });
      },
    };
  };
}

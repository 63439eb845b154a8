import type { Logger } from "../../observability/log.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { Balances } from "../balances.ts";
import { saturatingSubtract, type Lamports } from "../lamports.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { isFeePayerShort, type TransactionError } from "../rpc/transaction-error.ts";
import type { AccountLocks, Lease, StoredTransaction } from "./account-lock.ts";
import { CollectError } from "../collect-error.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import { createConfirmation } from "./send-and-confirm.ts";
import { createFailureBackoff } from "./failure-backoff.ts";
import type { FeePayer, SignedTransaction } from "./fee-payer.ts";
import type { Simulator } from "./simulation.ts";

/** The result of a collect: the fees that a landed transaction moved, or nothing to collect. */
export type CollectOutcome =
  | {
      readonly kind: "collected";
      /** The lamports that the transaction moved to the address. */
      readonly collected: Lamports;
      /** The withdrawable lamports at the address right after the transaction. */
      readonly newBalance: Lamports;
      readonly signature: string;
    }
  | { readonly kind: "nothing" };

/** A collect, from its first read until its transaction has landed or expired. */
export interface InFlightCollect {
  /** Rejects with {@link CollectError}, {@link RpcError}, or an error that marks a bug. */
  readonly outcome: Promise<CollectOutcome>;
  /** The signature of its transaction, once it is signed. */
  signature(): string | undefined;
  /**
   * Call when a caller times out; returns the error for that caller. A collect without a signed transaction
   * sends no new one afterwards, so that the error stays true; a signed one is still confirmed.
   */
  giveUp(): CollectError;
}

/**
 * The progress of a collect, which decides the error for a caller who times out.
 *
 * - preparing → storing → sent → landed: the normal order
 * - storing → preparing: the lease is lost
 * - preparing → abandoned: a caller timed out
 * - storing → abandoned: a caller timed out, and the lease is lost
 * - preparing or abandoned → sent: another replica signed the transaction
 */
type State =
  /** Nothing is sent yet. A caller who times out receives `not-sent`. */
  | { readonly kind: "preparing" }
  /** A caller received `not-sent`: send nothing except a transaction that another replica signed. */
  | { readonly kind: "abandoned" }
  /** Signed; sent next unless the lease is lost. */
  | { readonly kind: "storing"; readonly signature: string; readonly hasCallerTimedOut: boolean }
  /** Sent by this replica or another; may land at any moment. */
  | { readonly kind: "sent"; readonly signature: string }
  /** Confirmed; its amounts are being read. */
  | { readonly kind: "landed"; readonly signature: string };

/** What is known of a transaction that this replica signed. */
interface Own {
  /** The most it can cost. */
  readonly fee: Lamports;
  /** The lamports at the address that its owner cannot withdraw. */
  readonly reserved: Lamports;
}

/** The services that collects use. Only `feePayer` holds the key. */
export interface CollectNeeds {
  rpc: Rpc;
  balances: Balances;
  simulator: Simulator;
  feePayer: FeePayer;
  locks: AccountLocks;
  metrics: CollectMetrics;
  /** How long a caller waits; also how long the amounts of a landed transaction may take to read. */
  timeoutMs: number;
  log: Logger;
}

/** Returns a function that starts a collect of an account. Start at most one per account at a time. */
export function createStartCollect(needs: CollectNeeds): (account: AccountAddresses) => InFlightCollect {
  const { rpc, balances, simulator, feePayer, locks, metrics, timeoutMs, log } = needs;
  const { confirm, readLanded } = createConfirmation({ rpc, log });
  const backoff = createFailureBackoff();
  /** The fees of the transactions in flight, which the fee payer has not paid yet. */
  let openFees = 0n;

  /** Simulates and signs a collect; undefined when it would move too little. */
  async function sign(
    account: AccountAddresses,
  ): Promise<(SignedTransaction & StoredTransaction & Own) | undefined> {
    const simulation = await simulator.simulate(account);
    if (!simulation) return undefined;
    const { terms, spendable, reserved } = simulation;
    backoff.assertReady(account.address);

    const { blockhash, lastValidBlockHeight } = await rpc.getLatestBlockhash();
    if (spendable !== undefined && spendable < openFees) {
      const detail = "its balance does not cover this transaction besides those in flight";
      throw new CollectError({ kind: "fee-payer-short", detail });
    }
    const signed = await feePayer.sign(simulator.compose(account, blockhash, terms));
    if (!signed) {
      log.error(
        "the hour's budget for fees is used up: collects fail until part of it is an hour old; see FEE_BUDGET_LAMPORTS_PER_HOUR",
      );
      throw new CollectError({ kind: "budget-spent" });
    }
    return { ...signed, lastValidBlockHeight, reserved };
  }

  /**
   * The outcome of a landed transaction. `own` is undefined when another replica signed it: that replica counts
   * the fee.
   */
  async function readOutcome(
    account: AccountAddresses,
    signature: string,
    err: TransactionError | null,
    own: Own | undefined,
  ): Promise<CollectOutcome> {
    const { address } = account;
    const fee = own?.fee;
    const landed = err === null ? await readLanded(signature, timeoutMs) : undefined;
    // A failed transaction also costs its fee. The signed fee is the maximum, so ignore a node that reports more.
    if (fee !== undefined) metrics.paid(landed && landed.fee < fee ? landed.fee : fee);
    if (err !== null) {
      log.warn({ signature, address, error: err }, "a collect's transaction failed");
      if (isFeePayerShort(err)) {
        const detail = `transaction ${signature} failed on the chain: ${JSON.stringify(err)}`;
        throw new CollectError({ kind: "fee-payer-short", detail });
      }
      backoff.failed(address);
      throw new CollectError({ kind: "failed-on-chain", signature, err });
    }
    backoff.succeeded(address);
    const feePayerBalance = landed?.balances.get(feePayer.publicKey.toBase58())?.after;
    if (feePayerBalance !== undefined) metrics.setBalance(feePayerBalance);
    const { before, after } = landed?.balances.get(address) ?? {};
    if (before === undefined || after === undefined) {
      throw new CollectError({ kind: "landed-unreadable", signature });
    }
    const reserved = own?.reserved ?? (await balances.getReserved(account).catch(() => undefined));
    if (reserved === undefined) throw new CollectError({ kind: "landed-unreadable", signature });
    const collected = saturatingSubtract(after, before);
    if (fee !== undefined) metrics.collected(collected);
    log.info({ signature, address, lamports: collected.toString() }, "collected");
    // Anyone may collect directly on the chain, and may have moved the fees to this address first.
    return collected > 0n
      ? { kind: "collected", collected, newBalance: saturatingSubtract(after, reserved), signature }
      : { kind: "nothing" };
  }

  return (account) => {
    let state: State = { kind: "preparing" };
    const isAbandoned = () => state.kind === "abandoned";

    async function run(): Promise<CollectOutcome> {
      for (;;) {
        const lease = await locks.acquire(account.address, isAbandoned);
        rpc.requireSlot(lease.landedSlot);
        if (lease.openTransaction) return land(lease, lease.openTransaction, undefined);

        const signed = await sign(account).catch((error: unknown) => {
          lease.release();
          throw error;
        });
        if (!signed) {
          lease.release();
          return { kind: "nothing" };
        }
        // No await between this check and the change of state: a caller who times out there would receive a
        // wrong error.
        if (isAbandoned()) {
          signed.reservation.release();
          lease.release();
          throw new CollectError({ kind: "abandoned" });
        }
        const { base64, signature, lastValidBlockHeight } = signed;
        state = { kind: "storing", signature, hasCallerTimedOut: false };
        const transaction = { base64, signature, lastValidBlockHeight };
        if (await lease.store(transaction)) return land(lease, transaction, signed);
        // The lease expired, and another replica acquired the lock: never send this transaction; acquire again.
        signed.reservation.release();
        state = state.hasCallerTimedOut ? { kind: "abandoned" } : { kind: "preparing" };
      }
    }

    async function land(
      lease: Lease,
      transaction: StoredTransaction,
      own: Own | undefined,
    ): Promise<CollectOutcome> {
      const { signature } = transaction;
      state = { kind: "sent", signature };
      openFees += own?.fee ?? 0n;
      const maybeSent = lease.openTransaction !== undefined;
      const outcome = await confirm(transaction, { maybeSent }).finally(() => {
        openFees -= own?.fee ?? 0n;
      });
      if (outcome.kind === "expired") {
        lease.release();
        // Do not release the fee: only the nodes say that the transaction did not land, and they may be wrong.
        log.warn({ signature, address: account.address }, "a collect's transaction did not land");
        throw new CollectError({ kind: "expired", signature });
      }
      lease.release(outcome.slot);
      state = { kind: "landed", signature };
      return readOutcome(account, signature, outcome.err, own);
    }

    return {
      outcome: run(),
      signature: () => ("signature" in state ? state.signature : undefined),
      giveUp() {
        switch (state.kind) {
          case "preparing":
          case "abandoned":
            state = { kind: "abandoned" };
            return new CollectError({ kind: "not-sent" });
          case "storing":
          case "sent":
            if (state.kind === "storing") state = { ...state, hasCallerTimedOut: true };
            return new CollectError({ kind: "outcome-unknown", signature: state.signature });
          case "landed":
            return new CollectError({ kind: "landed-unreadable", signature: state.signature });
        }
      },
    };
  };
}

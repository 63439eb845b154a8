import type { Logger } from "../../observability/log.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { Balances } from "../balances.ts";
import { subtractToZero, type Lamports } from "../lamports.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { isFeePayerShort, type TransactionError } from "../rpc/transaction-error.ts";
import type { AccountLocks, Lease, StoredTransaction } from "./account-lock.ts";
import { CollectError } from "../collect-error.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import { createConfirmation } from "./confirmation.ts";
import { createFailureBackoff } from "./failure-backoff.ts";
import { FEW_COLLECTS, type FeePayer, type SignedTransaction } from "./fee-payer.ts";
import type { Simulator } from "./simulation.ts";

/** The result of a collect: fees that a landed transaction moved, or nothing worth a transaction. */
export type CollectOutcome =
  | {
      readonly kind: "collected";
      /** The lamports that the transaction moved to the address. */
      readonly collected: Lamports;
      /** The lamports at the address right after it. */
      readonly newBalance: Lamports;
      readonly signature: string;
    }
  | { readonly kind: "nothing" };

/** One collect, from its first read until its transaction has landed or expired. */
export interface InFlightCollect {
  /** Rejects with {@link CollectError}, {@link RpcError}, or an error that marks a defect. */
  readonly outcome: Promise<CollectOutcome>;
  /** The signature of its transaction, from the moment it is signed. */
  signature(): string | undefined;
  /**
   * For a caller whose time is up: returns what to tell it. From then on this collect signs nothing, so
   * that the caller's answer stays true; a transaction that is signed already is followed to its end.
   */
  giveUp(): CollectError;
}

/**
 * How far a collect is, which decides what a caller who gives up is told.
 *
 * preparing → storing → sent → landed. Back from storing to preparing when the lease is lost. From
 * preparing to abandoned when a caller gives up; from storing only when the lease is lost too. A transaction
 * that another replica has signed goes from preparing or abandoned straight to sent.
 */
type State =
  /** Nothing may be sent yet: a caller who gives up here is told that nothing was sent. */
  | { readonly kind: "preparing" }
  /** A caller was told so: nothing may be sent any more, but for what another replica has signed. */
  | { readonly kind: "abandoned" }
  /** Signed, and sent next unless the lease is lost. */
  | { readonly kind: "storing"; readonly signature: string; readonly isGivenUp: boolean }
  /** Sent by this replica or another: it may land at any moment. */
  | { readonly kind: "sent"; readonly signature: string }
  /** Confirmed by the chain; its amounts are being read. */
  | { readonly kind: "landed"; readonly signature: string };

/** What collects are made from; the signer's key is in `feePayer` alone. */
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

/** Returns a function that starts a collect of an account. The caller starts one per account at a time. */
export function createStartCollect(needs: CollectNeeds): (account: AccountAddresses) => InFlightCollect {
  const { rpc, balances, simulator, feePayer, locks, metrics, timeoutMs, log } = needs;
  const { confirm, readLanded } = createConfirmation({ rpc, log });
  const backoff = createFailureBackoff();
  /** The fees of the transactions in flight, which the chain has not taken from the fee payer yet. */
  let openFees = 0n;

  /** Simulates and signs a collect; undefined when it would move too little. */
  async function sign(
    account: AccountAddresses,
  ): Promise<(SignedTransaction & StoredTransaction) | undefined> {
    const simulation = await simulator.simulate(account);
    if (!simulation) return undefined;
    const { terms, spendable } = simulation;
    backoff.assertReady(account.address);

    const { blockhash, lastValidBlockHeight } = await rpc.getLatestBlockhash();
    if (spendable !== undefined && spendable < openFees) {
      const detail = "too little for the fee of one more collect beside the transactions in flight";
      throw new CollectError({ kind: "fee-payer-short", detail });
    }
    const signed = await feePayer.sign(simulator.compose(account, blockhash, terms));
    if (!signed) {
      log.error(
        "the hour's budget for fees is used up: collects fail until part of it is an hour old; see FEE_BUDGET_LAMPORTS_PER_HOUR",
      );
      throw new CollectError({ kind: "budget-spent" });
    }
    return { ...signed, lastValidBlockHeight };
  }

  /**
   * The outcome of a landed transaction. `fee`: what it can cost this replica; undefined when another one
   * signed it, which counts it.
   */
  async function readOutcome(
    { address }: AccountAddresses,
    signature: string,
    err: TransactionError | null,
    fee: Lamports | undefined,
  ): Promise<CollectOutcome> {
    const landed = err === null ? await readLanded(signature, timeoutMs) : undefined;
    // A failed transaction costs its fee too. No fee is above the one signed for, whatever a node says.
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
    if (landed) void warnWhenPoor(landed.balances.get(feePayer.publicKey.toBase58())?.after, landed.fee);
    const { before, after } = landed?.balances.get(address) ?? {};
    if (before === undefined || after === undefined) {
      throw new CollectError({ kind: "landed-unreadable", signature });
    }
    const collected = subtractToZero(after, before);
    if (fee !== undefined) metrics.collected(collected);
    log.info({ signature, address, lamports: collected.toString() }, "collected");
    // Anyone may collect on the chain itself, and may have moved the fees to the same address first.
    return collected > 0n
      ? { kind: "collected", collected, newBalance: after, signature }
      : { kind: "nothing" };
  }

  /** `lamports`: the fee payer's balance after a transaction that cost `fee`. */
  async function warnWhenPoor(lamports: Lamports | undefined, fee: Lamports): Promise<void> {
    if (lamports === undefined) return;
    metrics.setBalance(lamports);
    const rentMinimum = await balances.getRentMinimum().catch(() => 0n);
    if (lamports - rentMinimum >= fee * FEW_COLLECTS) return;
    log.warn(
      { lamports: lamports.toString() },
      `the fee payer can pay for fewer than ${FEW_COLLECTS} more collects: fund it`,
    );
  }

  return (account) => {
    let state: State = { kind: "preparing" };
    const isAbandoned = () => state.kind === "abandoned";

    async function run(): Promise<CollectOutcome> {
      for (;;) {
        const lease = await locks.acquire(account.address, isAbandoned);
        rpc.expectSlot(lease.landedSlot);
        if (lease.openTransaction) return land(lease, lease.openTransaction, undefined);

        const signed = await sign(account).catch((error: unknown) => {
          lease.release();
          throw error;
        });
        if (!signed) {
          lease.release();
          return { kind: "nothing" };
        }
        // In one step with the change of state: a caller who gives up in between would be told something false.
        if (isAbandoned()) {
          signed.reservation.release();
          lease.release();
          throw new CollectError({ kind: "given-up-before-sending" });
        }
        const { base64, signature, lastValidBlockHeight, fee } = signed;
        state = { kind: "storing", signature, isGivenUp: false };
        const transaction = { base64, signature, lastValidBlockHeight };
        if (await lease.store(transaction)) return land(lease, transaction, fee);
        // The lease expired and another replica has it: this transaction is never sent, that one's is followed.
        signed.reservation.release();
        state = state.isGivenUp ? { kind: "abandoned" } : { kind: "preparing" };
      }
    }

    async function land(
      lease: Lease,
      transaction: StoredTransaction,
      fee: Lamports | undefined,
    ): Promise<CollectOutcome> {
      const { signature } = transaction;
      state = { kind: "sent", signature };
      openFees += fee ?? 0n;
      const mayBeSent = lease.openTransaction !== undefined;
      const outcome = await confirm(transaction, { mayBeSent }).finally(() => {
        openFees -= fee ?? 0n;
      });
      if (outcome.kind === "expired") {
        lease.release();
        // Its fee stays in the budget: only the nodes' word says that it did not land.
        log.warn({ signature, address: account.address }, "a collect's transaction did not land");
        throw new CollectError({ kind: "expired", signature });
      }
      lease.release(outcome.slot);
      state = { kind: "landed", signature };
      return readOutcome(account, signature, outcome.err, fee);
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
            if (state.kind === "storing") state = { ...state, isGivenUp: true };
            return new CollectError({ kind: "outcome-unknown", signature: state.signature });
          case "landed":
            return new CollectError({ kind: "landed-unreadable", signature: state.signature });
        }
      },
    };
  };
}

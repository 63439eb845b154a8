import { setTimeout as sleep } from "node:timers/promises";
import { ContractError } from "../../contract/contract-error.ts";
import type { Logger } from "../../observability/log.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { Claim, Claims, KeptTransaction } from "./account-lock.ts";
import type { FeePayer, SignedTransaction } from "./fee-payer.ts";
import { createFailurePauses } from "./failure-backoff.ts";
import { createLanding } from "./confirmation.ts";
import { subtractToZero, type Lamports } from "../lamports.ts";
import type { Rehearsals } from "./simulation.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { toFailure } from "./transaction-error.ts";
import type { Vaults } from "../balances.ts";

/** What a collect came to: fees that a landed transaction moved, or nothing worth a transaction. */
export type CollectOutcome =
  | {
      readonly kind: "collected";
      /** What the transaction moved to the address. */
      readonly collected: Lamports;
      /** What the address held right after it. */
      readonly newBalance: Lamports;
      readonly signature: string;
    }
  | { readonly kind: "nothing" };

/** One collect under way, from the first read until its transaction has landed or is provably dead. */
interface Flight {
  readonly outcome: Promise<CollectOutcome>;
  readonly progress: Progress;
}

/** How far a flight has come. */
interface Progress {
  /** From when its transaction is signed. */
  signature?: string;
  /** The chain has confirmed it. */
  hasLanded?: boolean;
  /** A caller's time is up: what it has been told of the transaction is to stay true, so no other is signed. */
  isGivenUp?: boolean;
}

/** Collects under way at once; each is some calls to the chain a second, and a fee that is still open. */
const MAX_FLIGHTS = 200;
/** When the fee payer can pay for fewer than this many more, the operator is warned. */
export const FEW_COLLECTS = 100n;

export type Collector = ReturnType<typeof createCollector>;

/**
 * Moves an account's fees from its vault to its address, and is the one place that spends money.
 *
 * An account has one transaction under way at most: whoever asks for it meanwhile shares its outcome, on
 * whichever replica.
 * A transaction is signed once and the same bytes are sent until they have landed or can no longer land,
 * whether or not a caller still waits, so none is ever lost or doubled.
 */
export function createCollector(needs: {
  rpc: Rpc;
  vaults: Vaults;
  rehearsals: Rehearsals;
  feePayer: FeePayer;
  claims: Claims;
  metrics: CollectMetrics;
  timeoutMs: number;
  log: Logger;
}) {
  const { rpc, vaults, rehearsals, feePayer, claims, metrics, timeoutMs, log } = needs;
  const { land, readLanded } = createLanding({ rpc, log });
  const pauses = createFailurePauses();
  const flights = new Map<string, Flight>();
  /** The fees of the transactions under way, which the chain has not taken from the fee payer yet. */
  let openFees = 0n;

  function start(account: AccountAddresses): Flight {
    if (flights.size >= MAX_FLIGHTS) {
      throw failed("Too many collects are under way. Try again in a minute.");
    }
    const progress: Progress = {};
    const flight = { outcome: run(account, progress), progress };
    flights.set(account.address, flight);
    const end = (result: string) => {
      flights.delete(account.address);
      metrics.ended(result);
    };
    flight.outcome.then(
      ({ kind }) => {
        end(kind);
      },
      (error: unknown) => {
        end(error instanceof ContractError ? error.code : "COLLECT_FAILED");
      },
    );
    return flight;
  }

  async function run(account: AccountAddresses, progress: Progress): Promise<CollectOutcome> {
    const claim = await claims.claim(account.address, () => progress.isGivenUp === true);
    rpc.expectSlot(claim.landedSlot);
    if (claim.signedElsewhere) {
      progress.signature = claim.signedElsewhere.signature;
      return bringIn(account, claim.signedElsewhere, claim, progress);
    }
    const transaction = await prepare(account, progress, claim).catch((error: unknown) => {
      claim.end();
      throw error;
    });
    if (transaction === "nothing") {
      claim.end();
      return { kind: "nothing" };
    }
    return transaction === "claimed elsewhere"
      ? run(account, progress)
      : bringIn(account, transaction, claim, progress);
  }

  /** Rehearses and signs a collect, and has the transaction kept. */
  async function prepare(
    account: AccountAddresses,
    progress: Progress,
    claim: Claim,
  ): Promise<(SignedTransaction & KeptTransaction) | "nothing" | "claimed elsewhere"> {
    const rehearsal = await rehearsals.rehearse(account);
    if (rehearsal === "nothing") return "nothing";
    const { terms, spendable } = rehearsal;
    pauses.assertRested(account.address);

    const { blockhash, lastValidBlockHeight } = await rpc.getLatestBlockhash();
    if (spendable !== undefined && spendable < openFees) {
      throw new ContractError("INSUFFICIENT_FUNDS", {
        cause: new Error("the fee payer cannot pay for one more beside the transactions under way"),
      });
    }
    const signed = await feePayer.sign(rehearsals.compose(account, blockhash, terms));
    if (!signed) {
      log.error(
        "the hour's budget for fees is used up: collects fail until part of it is an hour old; see FEE_BUDGET_LAMPORTS_PER_HOUR",
      );
      throw failed("The service has spent its budget for fees. Try again in an hour.");
    }
    const { base64, signature, reservation } = signed;
    if (progress.isGivenUp) {
      reservation.release();
      throw new Error("the chain took longer than a caller waits to get as far as signing");
    }
    progress.signature = signature;
    if (await claim.keep({ base64, signature, lastValidBlockHeight })) {
      return { ...signed, lastValidBlockHeight };
    }
    delete progress.signature;
    reservation.release();
    return "claimed elsewhere";
  }

  /** Lands a transaction and tells what it has moved. What another replica has signed, that one counts. */
  async function bringIn(
    account: AccountAddresses,
    transaction: KeptTransaction & Partial<SignedTransaction>,
    claim: Claim,
    progress: Progress,
  ): Promise<CollectOutcome> {
    const { signature, fee } = transaction;
    openFees += fee ?? 0n;
    const fate = await land(transaction, claim.signedElsewhere !== undefined).finally(() => {
      openFees -= fee ?? 0n;
    });
    if (fate.kind === "dead") {
      claim.end();
      // Its fee stays in the budget: that it did not land is a node's word.
      log.warn({ signature, address: account.address }, "a collect's transaction did not land");
      throw failed(
        `Transaction ${signature} did not land and can no longer do so: nothing was moved. Try again.`,
      );
    }
    claim.end(fate.slot);
    progress.hasLanded = true;
    const landed = fate.err === null ? await readLanded(signature, timeoutMs) : undefined;
    // A transaction that failed has cost its fee as well. None costs more than was signed for, whatever a node says.
    if (fee !== undefined) metrics.paid(landed && landed.fee < fee ? landed.fee : fee);
    if (fate.err !== null) {
      log.warn({ signature, address: account.address, error: fate.err }, "a collect's transaction failed");
      const failure = toFailure(fate.err, `transaction ${signature} failed on chain`);
      // A fee payer that is short is no fault of the account's.
      if (failure.code === "COLLECT_FAILED") pauses.failed(account.address);
      throw failure;
    }
    pauses.succeeded(account.address);
    if (landed) void warnWhenPoor(landed.balances.get(feePayer.publicKey.toBase58())?.after, landed.fee);
    const { before, after } = landed?.balances.get(account.address) ?? {};
    if (before === undefined || after === undefined) throw failed(landedButNotRead(signature));
    const collected = subtractToZero(after, before);
    if (fee !== undefined) metrics.collected(collected);
    log.info({ signature, address: account.address, lamports: collected.toString() }, "collected");
    // Anyone may collect on the chain itself: whoever was faster has moved the fees to the same address.
    return collected > 0n
      ? { kind: "collected", collected, newBalance: after, signature }
      : { kind: "nothing" };
  }

  /** `lamports`: what the fee payer holds after a transaction that has cost `fee`. */
  async function warnWhenPoor(lamports: Lamports | undefined, fee: Lamports): Promise<void> {
    if (lamports === undefined) return;
    metrics.setBalance(lamports);
    const minimum = await vaults.getRentMinimum().catch(() => 0n);
    if (lamports - minimum >= fee * FEW_COLLECTS) return;
    log.warn(
      { lamports: lamports.toString() },
      `the fee payer can pay for fewer than ${FEW_COLLECTS} more collects: fund it`,
    );
  }

  return {
    /**
     * Collects an account's fees, or joins the collect of it that is under way. What the caller waits is
     * bounded by `timeoutMs` from `startedAt` on, for all collects of its request together; what was sent goes on.
     *
     * @throws {ContractError} INSUFFICIENT_FUNDS, COLLECT_FAILED
     */
    async collect(account: AccountAddresses, startedAt: number): Promise<CollectOutcome> {
      const leftMs = startedAt + timeoutMs - performance.now();
      if (leftMs <= 0) {
        throw failed("The time for this request is up, and this collect was not begun. Ask for it again.");
      }
      const { outcome, progress } = flights.get(account.address) ?? start(account);
      const stopWaiting = new AbortController();
      const timeout = sleep(leftMs, "timeout" as const, { signal: stopWaiting.signal });
      timeout.catch(() => undefined);
      try {
        const result = await Promise.race([outcome, timeout]);
        if (result !== "timeout") return result;
      } catch (cause) {
        throw cause instanceof ContractError ? cause : new ContractError("COLLECT_FAILED", { cause });
      } finally {
        stopWaiting.abort();
      }
      progress.isGivenUp = true;
      if (!progress.signature) {
        throw failed("The chain did not answer in time. No transaction was sent.");
      }
      throw failed(
        progress.hasLanded
          ? landedButNotRead(progress.signature)
          : `It is not known yet whether transaction ${progress.signature} lands. Look it up by its signature; collecting again waits for it.`,
      );
    },

    /** Resolves when no transaction is under way. */
    async settled(): Promise<void> {
      while (flights.size > 0) await Promise.allSettled([...flights.values()].map(({ outcome }) => outcome));
    },

    /** The signatures of the transactions under way. */
    openSignatures: () => [...flights.values()].flatMap(({ progress }) => progress.signature ?? []),
  };
}

function failed(message: string): ContractError {
  return new ContractError("COLLECT_FAILED", { message });
}

function landedButNotRead(signature: string): string {
  return `Transaction ${signature} landed, but its amounts cannot be read at the moment. Look it up by its signature.`;
}

import { setTimeout as sleep } from "node:timers/promises";
import {
  ComputeBudgetProgram,
  PublicKey,
  TransactionMessage,
  VersionedTransaction,
  type Message,
} from "@solana/web3.js";
import { ContractError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { AccountAddresses } from "./addresses.ts";
import { BASE_FEE_LAMPORTS, type FeePayer, type SignedTransaction } from "./fee-payer.ts";
import type { CollectCreatorFee } from "./launchpad.ts";
import { toLamports, type Lamports } from "./lamports.ts";
import type { Rpc, TransactionError } from "./rpc.ts";
import type { Vaults } from "./vaults.ts";

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
  readonly sent: Sent;
}

/** The signature of a flight's transaction, from when it is signed. */
interface Sent {
  signature?: string;
}

/** About one slot. */
const POLL_MS = 400;
const RESEND_MS = 2_000;
/** Far above what a collect uses; only the simulation runs with it. */
const SIMULATION_UNIT_LIMIT = 200_000;
const UNIT_LIMIT_MARGIN = 1.2;
/** A blockhash for simulations, which replace it. */
const NO_BLOCKHASH = PublicKey.default.toBase58();

export type Collector = ReturnType<typeof createCollector>;

/**
 * Moves an account's fees from its vault to its address, and is the one place that spends money.
 *
 * An account has one transaction under way at most: whoever asks for it meanwhile shares its outcome.
 * A transaction is signed once and the same bytes are sent until they have landed or can no longer land,
 * whether or not a caller still waits, so none is ever lost or doubled.
 */
export function createCollector(needs: {
  rpc: Rpc;
  vaults: Vaults;
  feePayer: FeePayer;
  collectCreatorFee: CollectCreatorFee;
  minLamports: Lamports;
  timeoutMs: number;
  log: Logger;
}) {
  const { rpc, vaults, feePayer, collectCreatorFee, minLamports, timeoutMs, log } = needs;
  const flights = new Map<string, Flight>();

  function start(account: AccountAddresses): Flight {
    const sent: Sent = {};
    const flight = { outcome: run(account, sent), sent };
    flights.set(account.address, flight);
    const end = () => {
      flights.delete(account.address);
    };
    flight.outcome.then(end, end);
    return flight;
  }

  async function run(account: AccountAddresses, sent: Sent): Promise<CollectOutcome> {
    const giveUpAt = performance.now() + timeoutMs;
    const [held, before] = await rpc.getBalances([account.creatorVault, account.address]);
    const minimum = await vaults.getRentMinimum();
    if (held! - minimum < minLamports) return { kind: "nothing" };

    const simulation = await simulate(account);
    if (simulation.err !== null) {
      if (isTooLittleToArrive(simulation.err)) return { kind: "nothing" };
      throw toFailure(simulation.err, `simulated: ${simulation.logs.join(" | ")}`);
    }
    const [after] = simulation.balances ?? [];
    if (after !== undefined && after - before! < minLamports) return { kind: "nothing" };

    const { blockhash, lastValidBlockHeight } = await rpc.getLatestBlockhash();
    if (performance.now() >= giveUpAt) throw new Error("the chain took too long to get as far as signing");
    const unitLimit = Math.ceil((simulation.unitsConsumed ?? SIMULATION_UNIT_LIMIT) * UNIT_LIMIT_MARGIN);
    const reservation = feePayer.reserve(BASE_FEE_LAMPORTS);
    if (!reservation) {
      log.error(
        "the hour's budget for fees is used up: collects fail until part of it is an hour old; see FEE_BUDGET_LAMPORTS_PER_HOUR",
      );
      throw new ContractError("COLLECT_FAILED", {
        message: "The service has spent its budget for fees. Try again in an hour.",
      });
    }
    const transaction = await feePayer.sign(compose(account, blockhash, unitLimit));
    sent.signature = transaction.signature;

    const landed = await land(transaction, lastValidBlockHeight);
    if (!landed) {
      reservation.settle(toLamports(0));
      throw new ContractError("COLLECT_FAILED", {
        message: `Transaction ${transaction.signature} did not land and can no longer do so: nothing was moved. Try again.`,
      });
    }
    const { err, fee, balances } = await readLanded(transaction.signature);
    reservation.settle(fee);
    if (err !== null) throw toFailure(err, `transaction ${transaction.signature} failed on chain`);
    const { before: held0, after: held1 } = balances.get(account.address) ?? {};
    if (held0 === undefined || held1 === undefined) {
      throw new Error(
        `transaction ${transaction.signature} landed, but tells no balance of ${account.address}`,
      );
    }
    // Anyone may collect on the chain itself: whoever was faster has moved the fees to the same address.
    if (held1 <= held0) return { kind: "nothing" };
    return {
      kind: "collected",
      collected: toLamports(held1 - held0),
      newBalance: held1,
      signature: transaction.signature,
    };
  }

  function compose(account: AccountAddresses, blockhash: string, unitLimit: number): Message {
    return new TransactionMessage({
      payerKey: feePayer.publicKey,
      recentBlockhash: blockhash,
      instructions: [
        ComputeBudgetProgram.setComputeUnitLimit({ units: unitLimit }),
        collectCreatorFee(account),
      ],
    }).compileToLegacyMessage();
  }

  function simulate(account: AccountAddresses) {
    const unsigned = new VersionedTransaction(compose(account, NO_BLOCKHASH, SIMULATION_UNIT_LIMIT));
    return rpc.simulateTransaction(Buffer.from(unsigned.serialize()).toString("base64"), [account.address]);
  }

  /**
   * Sends the same bytes again and again until the chain confirms them (true) or never can any more
   * (false). A failed send or read tells nothing about the transaction, so it only means another try.
   */
  async function land(
    { base64, signature }: SignedTransaction,
    lastValidBlockHeight: number,
  ): Promise<boolean> {
    let nextSendAt = 0;
    for (;;) {
      if (performance.now() >= nextSendAt) {
        if (nextSendAt > 0) {
          const fate = await orUndefined(findFate(signature, lastValidBlockHeight));
          if (fate) return fate === "landed";
        }
        nextSendAt = performance.now() + RESEND_MS;
        void orUndefined(rpc.sendTransaction(base64));
      }
      await sleep(POLL_MS);
      const answer = await orUndefined(
        rpc.getSignatureStatus(signature, { searchTransactionHistory: false }),
      );
      if (answer?.status?.confirmed) return true;
    }
  }

  /**
   * A transaction is dead once its blockhash has expired in a finalized block, and a node that has seen
   * that block finds the transaction nowhere in its history. Undefined: still open.
   */
  async function findFate(
    signature: string,
    lastValidBlockHeight: number,
  ): Promise<"landed" | "dead" | undefined> {
    if ((await rpc.getFinalizedBlockHeight()) <= lastValidBlockHeight) return undefined;
    const expiredAt = await rpc.getFinalizedSlot();
    const { status, slot } = await rpc.getSignatureStatus(signature, { searchTransactionHistory: true });
    if (status) return status.confirmed ? "landed" : undefined;
    return slot >= expiredAt ? "dead" : undefined;
  }

  /** The landed transaction; nodes may need a moment after its confirmation until they know it. */
  async function readLanded(signature: string) {
    const giveUpAt = performance.now() + timeoutMs;
    for (;;) {
      const found = await orUndefined(rpc.getTransaction(signature));
      if (found) return found;
      if (performance.now() > giveUpAt) {
        throw new ContractError("COLLECT_FAILED", {
          message: `Transaction ${signature} landed, but its amounts cannot be read at the moment. Look it up by its signature.`,
        });
      }
      await sleep(POLL_MS);
    }
  }

  /** For calls that are simply made again: their errors are logged here and nowhere else. */
  async function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
    try {
      return await call;
    } catch (error) {
      log.debug({ err: error }, "a call to the chain failed while a transaction was under way");
      return undefined;
    }
  }

  return {
    /**
     * Collects an account's fees, or joins the collect of it that is under way. What the caller waits is
     * bounded by `timeoutMs`; what was sent goes on.
     *
     * @throws {ContractError} INSUFFICIENT_FUNDS, COLLECT_FAILED
     */
    async collect(account: AccountAddresses): Promise<CollectOutcome> {
      const flight = flights.get(account.address) ?? start(account);
      const stopWaiting = new AbortController();
      const timeout = sleep(timeoutMs, "timeout" as const, { signal: stopWaiting.signal });
      timeout.catch(() => undefined);
      try {
        const result = await Promise.race([flight.outcome, timeout]);
        if (result !== "timeout") return result;
      } catch (cause) {
        throw cause instanceof ContractError ? cause : new ContractError("COLLECT_FAILED", { cause });
      } finally {
        stopWaiting.abort();
      }
      throw new ContractError("COLLECT_FAILED", {
        message: flight.sent.signature
          ? `It is not known yet whether transaction ${flight.sent.signature} lands. Look it up by its signature; collecting again waits for it.`
          : "The chain did not answer in time. No transaction was sent.",
      });
    },

    /** Resolves when no transaction is under way. */
    async settled(): Promise<void> {
      await Promise.allSettled([...flights.values()].map((flight) => flight.outcome));
    },
  };
}

/** Errors that say the fee payer cannot pay, in the structure in which simulation and status give them. */
function isFeePayerShort(err: TransactionError): boolean {
  if (err === "AccountNotFound" || err === "InsufficientFundsForFee") return true;
  return rentShortAccount(err) === 0;
}

/** The amount would leave a new address below the rent-exempt minimum. */
function isTooLittleToArrive(err: TransactionError): boolean {
  const index = rentShortAccount(err);
  return index !== undefined && index !== 0;
}

function rentShortAccount(err: TransactionError): number | undefined {
  if (typeof err === "string") return undefined;
  const details = err.InsufficientFundsForRent as { account_index?: number } | undefined;
  return details?.account_index;
}

function toFailure(err: TransactionError, what: string): ContractError {
  const cause = new Error(`${what}: ${JSON.stringify(err)}`);
  return new ContractError(isFeePayerShort(err) ? "INSUFFICIENT_FUNDS" : "COLLECT_FAILED", { cause });
}

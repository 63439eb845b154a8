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
import { BASE_FEE_LAMPORTS, type FeePayer } from "./fee-payer.ts";
import type { CollectCreatorFee } from "./launchpad.ts";
import { createLanding } from "./landing.ts";
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
  readonly progress: Progress;
}

/** How far a flight has come. */
interface Progress {
  /** From when its transaction is signed. */
  signature?: string;
  /** The chain has confirmed it. */
  hasLanded?: boolean;
  /** A caller has been told that nothing was sent, so nothing may be. */
  isGivenUp?: boolean;
}

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
  const { land, readLanded } = createLanding({ rpc, log });
  const flights = new Map<string, Flight>();

  function start(account: AccountAddresses): Flight {
    const progress: Progress = {};
    const flight = { outcome: run(account, progress), progress };
    flights.set(account.address, flight);
    const end = () => {
      flights.delete(account.address);
    };
    flight.outcome.then(end, end);
    return flight;
  }

  async function run(account: AccountAddresses, progress: Progress): Promise<CollectOutcome> {
    const unitsUsed = await rehearse(account);
    if (unitsUsed === "nothing") return { kind: "nothing" };

    const { blockhash, lastValidBlockHeight } = await rpc.getLatestBlockhash();
    const reservation = feePayer.reserve(BASE_FEE_LAMPORTS);
    if (!reservation) {
      log.error(
        "the hour's budget for fees is used up: collects fail until part of it is an hour old; see FEE_BUDGET_LAMPORTS_PER_HOUR",
      );
      throw failed("The service has spent its budget for fees. Try again in an hour.");
    }
    const unitLimit = Math.ceil(unitsUsed * UNIT_LIMIT_MARGIN);
    const transaction = await feePayer.sign(compose(account, blockhash, unitLimit));
    const { signature } = transaction;
    if (progress.isGivenUp) {
      reservation.settle(toLamports(0));
      throw new Error("the chain took longer than a caller waits to get as far as signing");
    }
    progress.signature = signature;

    const fate = await land(transaction, lastValidBlockHeight);
    if (fate.kind === "dead") {
      reservation.settle(toLamports(0));
      log.warn({ signature, address: account.address }, "a collect's transaction did not land");
      throw failed(
        `Transaction ${signature} did not land and can no longer do so: nothing was moved. Try again.`,
      );
    }
    progress.hasLanded = true;
    if (fate.err !== null) {
      log.warn({ signature, address: account.address, error: fate.err }, "a collect's transaction failed");
      throw toFailure(fate.err, `transaction ${signature} failed on chain`);
    }
    const landed = await readLanded(signature, timeoutMs);
    if (landed) reservation.settle(landed.fee);
    const { before, after } = landed?.balances.get(account.address) ?? {};
    if (before === undefined || after === undefined) throw failed(landedButNotRead(signature));
    const collected = toLamports(after - before);
    log.info({ signature, address: account.address, lamports: collected.toString() }, "collected");
    // Anyone may collect on the chain itself: whoever was faster has moved the fees to the same address.
    return collected > 0n
      ? { kind: "collected", collected, newBalance: after, signature }
      : { kind: "nothing" };
  }

  /**
   * Reads and simulates what a collect would do, and gives the compute units it would use, or "nothing"
   * when it would not move enough.
   */
  async function rehearse(account: AccountAddresses): Promise<number | "nothing"> {
    const [held] = await rpc.getBalances([account.creatorVault]);
    const minimum = await vaults.getRentMinimum();
    if (held! - minimum < minLamports) return "nothing";

    const unsigned = new VersionedTransaction(compose(account, NO_BLOCKHASH, SIMULATION_UNIT_LIMIT));
    const base64 = Buffer.from(unsigned.serialize()).toString("base64");
    const { err, unitsConsumed, balances, logs } = await rpc.simulateTransaction(base64, [
      account.creatorVault,
    ]);
    if (err !== null) {
      if (isTooLittleToArrive(err)) return "nothing";
      throw toFailure(err, `simulated: ${logs.join(" | ")}`);
    }
    // Told by the vault, because the address may lose a withdrawal in the same moment.
    const [left] = balances ?? [];
    if (left !== undefined && held! - left < minLamports) return "nothing";
    return unitsConsumed || SIMULATION_UNIT_LIMIT;
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

  return {
    /**
     * Collects an account's fees, or joins the collect of it that is under way. What the caller waits is
     * bounded by `timeoutMs`; what was sent goes on.
     *
     * @throws {ContractError} INSUFFICIENT_FUNDS, COLLECT_FAILED
     */
    async collect(account: AccountAddresses): Promise<CollectOutcome> {
      const { outcome, progress } = flights.get(account.address) ?? start(account);
      const stopWaiting = new AbortController();
      const timeout = sleep(timeoutMs, "timeout" as const, { signal: stopWaiting.signal });
      timeout.catch(() => undefined);
      try {
        const result = await Promise.race([outcome, timeout]);
        if (result !== "timeout") return result;
      } catch (cause) {
        throw cause instanceof ContractError ? cause : new ContractError("COLLECT_FAILED", { cause });
      } finally {
        stopWaiting.abort();
      }
      if (!progress.signature) {
        progress.isGivenUp = true;
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

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
import type { ReadAccount } from "./accounts.ts";
import type { FeePayer } from "./fee-payer.ts";
import { createLanding } from "./landing.ts";
import type { Launchpad } from "./launchpad.ts";
import { toLamports, type Lamports } from "./lamports.ts";
import { choosePrice } from "./priority-fee.ts";
import type { Rpc } from "./rpc.ts";
import { isTooLittleToArrive, toFailure } from "./transaction-failure.ts";
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

/** What a collect's transaction is made for: the units it may use and their price, and whether it asks the AMM. */
interface Terms {
  readonly unitLimit: number;
  /** In micro-lamports a compute unit. */
  readonly price: bigint;
  readonly withAmm: boolean;
}

/** What a rehearsal has shown: the terms, and what the fee payer would have left above its rent-exempt minimum. */
interface Rehearsal {
  readonly terms: Terms;
  readonly spendable: bigint | undefined;
}

/** Far above what a collect uses; only the simulation runs with it. */
const SIMULATION_UNIT_LIMIT = 400_000;
const UNIT_LIMIT_MARGIN = 1.2;
/** A blockhash for simulations, which replace it. */
const NO_BLOCKHASH = PublicKey.default.toBase58();
/** Collects under way at once; each is some calls to the chain a second, and a fee that is not settled. */
const MAX_FLIGHTS = 200;
/** When the fee payer can pay for fewer than this many more, the operator is warned. */
const FEW_COLLECTS = 100n;

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
  readAccount: ReadAccount;
  vaults: Vaults;
  feePayer: FeePayer;
  launchpad: Launchpad;
  minLamports: Lamports;
  maxPriorityFee: Lamports;
  timeoutMs: number;
  log: Logger;
}) {
  const { rpc, readAccount, vaults, feePayer, launchpad, minLamports, maxPriorityFee, timeoutMs, log } =
    needs;
  const { land, readLanded } = createLanding({ rpc, log });
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
    const end = () => {
      flights.delete(account.address);
    };
    flight.outcome.then(end, end);
    return flight;
  }

  async function run(account: AccountAddresses, progress: Progress): Promise<CollectOutcome> {
    const rehearsal = await rehearse(account);
    if (rehearsal === "nothing") return { kind: "nothing" };
    const { terms, spendable } = rehearsal;

    const { blockhash, lastValidBlockHeight } = await rpc.getLatestBlockhash();
    if (spendable !== undefined && spendable < openFees) {
      throw new ContractError("INSUFFICIENT_FUNDS", {
        cause: new Error("the fee payer cannot pay for one more beside the transactions under way"),
      });
    }
    const transaction = await feePayer.sign(compose(account, blockhash, terms));
    if (!transaction) {
      log.error(
        "the hour's budget for fees is used up: collects fail until part of it is an hour old; see FEE_BUDGET_LAMPORTS_PER_HOUR",
      );
      throw failed("The service has spent its budget for fees. Try again in an hour.");
    }
    const { signature, settle } = transaction;
    if (progress.isGivenUp) {
      settle(toLamports(0));
      throw new Error("the chain took longer than a caller waits to get as far as signing");
    }
    progress.signature = signature;

    openFees += transaction.fee;
    const fate = await land(transaction, lastValidBlockHeight).finally(() => {
      openFees -= transaction.fee;
    });
    if (fate.kind === "dead") {
      settle(toLamports(0));
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
    if (landed) settle(landed.fee);
    void warnWhenPoor(landed?.balances.get(feePayer.publicKey.toBase58())?.after, transaction.fee);
    const { before, after } = landed?.balances.get(account.address) ?? {};
    if (before === undefined || after === undefined) throw failed(landedButNotRead(signature));
    const collected = toLamports(after - before);
    log.info({ signature, address: account.address, lamports: collected.toString() }, "collected");
    // Anyone may collect on the chain itself: whoever was faster has moved the fees to the same address.
    return collected > 0n
      ? { kind: "collected", collected, newBalance: after, signature }
      : { kind: "nothing" };
  }

  /** Reads and simulates what a collect would do; "nothing" when it would not move enough. */
  async function rehearse(account: AccountAddresses): Promise<Rehearsal | "nothing"> {
    const { collectable, inAmm, inCreatorVault } = await vaults.getFees(account, readAccount);
    if (collectable < minLamports) return "nothing";

    const withAmm = inAmm > 0n;
    const rehearsal = compose(account, NO_BLOCKHASH, {
      unitLimit: SIMULATION_UNIT_LIMIT,
      price: 0n,
      withAmm,
    });
    const base64 = Buffer.from(new VersionedTransaction(rehearsal).serialize()).toString("base64");
    const { err, unitsConsumed, balances, logs } = await rpc.simulateTransaction(base64, [
      account.creatorVault,
      feePayer.publicKey.toBase58(),
    ]);
    if (err !== null) {
      if (isTooLittleToArrive(err)) return "nothing";
      throw toFailure(err, `simulated: ${logs.join(" | ")}`);
    }
    // Told by the vaults, because the address may lose a withdrawal in the same moment.
    const [left, funds] = balances ?? [];
    if (left !== undefined && inCreatorVault + inAmm - left < minLamports) return "nothing";

    const unitLimit = Math.ceil((unitsConsumed || SIMULATION_UNIT_LIMIT) * UNIT_LIMIT_MARGIN);
    const written = [account.address, account.creatorVault, ...(withAmm ? [account.ammVault] : [])];
    const price = await choosePrice(rpc, written, unitLimit, maxPriorityFee);
    const spendable = funds === undefined ? undefined : funds - (await vaults.getRentMinimum());
    return { terms: { unitLimit, withAmm, price }, spendable };
  }

  function compose(
    account: AccountAddresses,
    blockhash: string,
    { unitLimit, price, withAmm }: Terms,
  ): Message {
    return new TransactionMessage({
      payerKey: feePayer.publicKey,
      recentBlockhash: blockhash,
      instructions: [
        ComputeBudgetProgram.setComputeUnitLimit({ units: unitLimit }),
        ...(price > 0n ? [ComputeBudgetProgram.setComputeUnitPrice({ microLamports: price })] : []),
        ...(withAmm ? [launchpad.transferCreatorFeesToPump(account)] : []),
        launchpad.collectCreatorFee(account),
      ],
    }).compileToLegacyMessage();
  }

  /** `lamports`: what the fee payer holds after a transaction that has cost `fee`. */
  async function warnWhenPoor(lamports: Lamports | undefined, fee: Lamports): Promise<void> {
    if (lamports === undefined) return;
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

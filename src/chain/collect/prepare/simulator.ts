import { VersionedTransaction, type PublicKey } from "@solana/web3.js";
import type { Logger } from "../../../observability/log.ts";
import { CollectError } from "../../collect-error.ts";
import type { Floors } from "../../slots/floors.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import { BASE_FEE_LAMPORTS, choosePrice, priorityFee, type PricePolicy } from "../../priority-fee.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import { isFeePayerShort, isReceiverBelowRent, type TransactionError } from "../../rpc/transaction-error.ts";
import {
  chooseSweeps,
  collectableWith,
  isRentAcceptable,
  rentOf,
  sweepsInto,
  type Sweep,
  type Vaults,
} from "../../sweeps.ts";
import { writableOf, type CollectPart, type Composer, type TransactionTerms } from "../message/composer.ts";
import type { Prospect, Prospects } from "./prospect.ts";

/** What a simulated transaction did. */
interface Simulated extends Omit<Awaited<ReturnType<Rpc["simulateTransaction"]>>, "balances"> {
  /** The lamports of each part's creator vault afterwards; undefined when unknown. */
  readonly vaultsAfter: readonly Lamports[] | undefined;
  readonly feePayerAfter: Lamports | undefined;
  /** What the fee payer lost besides the base fee; undefined when unknown. */
  readonly rent: Lamports | undefined;
}

/** The terms of a transaction, without a guard. */
type Price = Omit<TransactionTerms, "guard">;

/** A transaction of one account that succeeds in the simulation. */
interface Simulation {
  readonly part: CollectPart;
  readonly terms: Price;
  /** The fee payer's lamports above its rent-exempt minimum, after all fees and rents; undefined when unknown. */
  readonly spendable: bigint | undefined;
  /** The most that the fee payer pays besides the fee. */
  readonly rent: Lamports;
  /** The lamports that the vaults and coins lose. */
  readonly moved: Lamports;
  /** The sweeps that another collect would do. */
  readonly remaining: readonly Sweep[];
}

/** From this simulation on, one that fails leaves out all sweeps. */
const MAX_SIMULATIONS_WITH_SWEEPS = 8;
/** Far above what a collect and a sweep use. Also the basis of the real limit when the node does not report the used units. */
const SIMULATION_UNIT_LIMIT = 400_000;
const SIMULATION_UNIT_LIMIT_PER_SWEEP = 150_000;
/** The chain's limit for a transaction. */
const MAX_UNIT_LIMIT = 1_400_000;
const UNIT_LIMIT_MARGIN = 1.2;
/**
 * The lowest limits of a part. An instruction uses less when its vault is empty, the AMM's almost none: the
 * simulation may see it empty, and fees may arrive before the transaction lands. On the sandbox a collect
 * uses 5,000 to 12,000 units, depending on the addresses, and the AMM's part about 25,000 more.
 */
const MIN_UNIT_LIMIT = 10_000;
const MIN_UNIT_LIMIT_WITH_AMM = 60_000;

/** The terms of simulated transactions. */
export const SIMULATION_TERMS: TransactionTerms = { unitLimit: SIMULATION_UNIT_LIMIT, price: 0n, guard: 1n };

export type Simulator = ReturnType<typeof createSimulator>;

/** Simulates transactions of one or several accounts, and chooses their terms. */
export function createSimulator(
  needs: PricePolicy & {
    rpc: Rpc;
    floors: Pick<Floors, "landedSlotOf">;
    composer: Composer;
    prospects: Prospects;
    feePayer: PublicKey;
    minLamports: Lamports;
    /** The most rent that one collect may pay. */
    maxRent: Lamports;
    log: Logger;
  },
) {
  const { rpc, floors, composer, prospects, feePayer, minLamports, maxRent, log } = needs;

  async function simulate(parts: readonly CollectPart[]): Promise<Simulated> {
    const sweeps = parts.flatMap((part) => part.sweeps);
    const unitLimit = SIMULATION_UNIT_LIMIT + sweeps.length * SIMULATION_UNIT_LIMIT_PER_SWEEP;
    const message = composer.compose(parts, {
      ...SIMULATION_TERMS,
      unitLimit: Math.min(unitLimit, MAX_UNIT_LIMIT),
    });
    const base64 = Buffer.from(new VersionedTransaction(message).serialize()).toString("base64");
    const vaults = parts.map(({ account }) => account.creatorVault);
    const minSlot = Math.max(...parts.map(({ account }) => floors.landedSlotOf(account.address)));
    const [simulated, [before] = []] = await Promise.all([
      rpc.simulateTransaction(base64, [...vaults, feePayer.toBase58()], minSlot),
      // Without sweeps nothing uses the fee payer's account.
      sweeps.length > 0 ? rpc.getAccounts([[feePayer.toBase58()]]).then((groups) => groups[0]) : [],
    ]);
    const { balances, ...result } = simulated;
    const feePayerAfter = balances?.[vaults.length];
    const rent =
      before && feePayerAfter !== undefined
        ? saturatingSubtract(before.lamports, toLamports(feePayerAfter + BASE_FEE_LAMPORTS))
        : undefined;
    return { ...result, vaultsAfter: balances?.slice(0, vaults.length), feePayerAfter, rent };
  }

  /** What a simulated transaction moves for a part; undefined when that is less than `minLamports`. */
  function movedIfEnough(
    part: CollectPart,
    vaults: Vaults,
    vaultAfter: Lamports | undefined,
  ): Lamports | undefined {
    // Compare what the vaults and coins lose, not what the address gains: its owner may withdraw at any moment.
    const kept = saturatingSubtract(vaultAfter ?? vaults.rentMinimum, vaults.rentMinimum);
    const moved = saturatingSubtract(collectableWith(part.sweeps, vaults), kept);
    return moved < minLamports ? undefined : moved;
  }

  /** The price per compute unit for a transaction with these parts. Never rejects. */
  const priceOf = (parts: readonly CollectPart[], unitLimit: number): Promise<bigint> =>
    choosePrice(rpc, parts.flatMap(writableOf), unitLimit, needs);

  async function termsOf(parts: readonly CollectPart[], { unitsConsumed }: Simulated): Promise<Price> {
    const units = Math.ceil((unitsConsumed || SIMULATION_UNIT_LIMIT) * UNIT_LIMIT_MARGIN);
    const least = parts.reduce(
      (sum, { withAmm }) => sum + (withAmm ? MIN_UNIT_LIMIT_WITH_AMM : MIN_UNIT_LIMIT),
      0,
    );
    const unitLimit = Math.min(Math.max(units, least), MAX_UNIT_LIMIT);
    return { unitLimit, price: await priceOf(parts, unitLimit) };
  }

  /** The fee payer's lamports above `rentMinimum`, after all fees and rents; undefined when unknown. */
  function spendableAfter(
    { feePayerAfter }: Simulated,
    { unitLimit, price }: Price,
    rentMinimum: Lamports,
  ): bigint | undefined {
    if (feePayerAfter === undefined) return undefined;
    // The simulation pays the base fee only: the priority fee depends on the units that it measures.
    return feePayerAfter - priorityFee(price, unitLimit) - rentMinimum;
  }

  /**
   * Simulates a collect of an account and its coins; undefined when it would move less than `minLamports`, or leave
   * the address below its rent-exempt minimum. Leaves out what makes the simulation fail, or costs too much rent: a
   * sweep, or the AMM's vault if the creator vault alone has enough. Throws {@link CollectError} `fee-payer-short` or
   * `simulation-failed`.
   */
  async function simulateAlone({ wallet, fees }: Prospect): Promise<Simulation | undefined> {
    const { account } = wallet;
    const { address } = account;
    let { vaults, sweeps } = fees;
    let failure: CollectError | undefined;

    function leaveOutAmm(error: CollectError): void {
      log.warn(
        { address, err: error },
        "a collect leaves out the AMM's fees, because its simulation fails with them: check LAUNCHPAD_AMM_PROGRAM_ID",
      );
      failure = error;
      vaults = { ...vaults, ammVault: toLamports(0) };
      sweeps = sweepsInto("creatorVault", sweeps);
    }

    function leaveOut(some: readonly Sweep[], error: Error): void {
      log.warn(
        { address, mints: some.map(({ coin }) => coin.mint), err: error },
        "a collect leaves out coins, because their sweeps fail or cost too much: if this happens for every coin, check LAUNCHPAD_PROGRAM_ID and LAUNCHPAD_AMM_PROGRAM_ID",
      );
      sweeps = without(sweeps, some);
    }

    for (let simulations = 1; ; simulations++) {
      const part = prospects.choosePart(account, sweeps, vaults);
      if (!part) {
        if (failure) throw failure;
        return undefined;
      }
      const hasSweeps = part.sweeps.length > 0;
      const simulated = await simulate([part]);
      const { err, logs, rent } = simulated;
      if (err === null) {
        const tooExpensive = hasSweeps && rent === undefined ? sweeps : findTooExpensive(part, rent);
        if (tooExpensive.length === 0) return toSimulation(part, vaults, sweeps, simulated);
        const text = `the fee payer's rent in the simulation, in lamports: ${rent ?? "unknown"}`;
        leaveOut(tooExpensive, new Error(text));
        continue;
      }
      const error = new CollectError({ kind: "simulation-failed", err, logs });
      const step = composer.findCulprit([part], SIMULATION_TERMS, err)?.step;
      if (step?.kind !== "sweep" && isReceiverBelowRent(err)) return undefined;
      assertFeePayerPays(err);
      if (hasSweeps && simulations >= MAX_SIMULATIONS_WITH_SWEEPS) leaveOut(sweeps, error);
      else if (step?.kind === "sweep") leaveOut([step.sweep], error);
      else if (part.withAmm && (step?.kind === "amm" || !hasSweeps)) leaveOutAmm(error);
      else if (hasSweeps) leaveOut(sweeps, error);
      else throw error;
    }
  }

  /**
   * The sweep to leave out because the simulation shows more rent than expected. The sum does not show which
   * sweep costs more, so all of it must be acceptable for the smallest one.
   */
  function findTooExpensive({ sweeps }: CollectPart, rent = toLamports(0)): Sweep[] {
    if (rent <= rentOf(sweeps)) return [];
    const smallest = sweeps.reduce((a, b) => (b.amount < a.amount ? b : a));
    return rent <= maxRent && isRentAcceptable(rent, smallest.amount) ? [] : [smallest];
  }

  async function toSimulation(
    part: CollectPart,
    vaults: Vaults,
    sweeps: readonly Sweep[],
    simulated: Simulated,
  ): Promise<Simulation | undefined> {
    const { rent } = simulated;
    const moved = movedIfEnough(part, vaults, simulated.vaultsAfter?.[0]);
    if (moved === undefined) return undefined;
    const terms = await termsOf([part], simulated);
    const expectedRent = rentOf(part.sweeps);
    return {
      part,
      terms,
      spendable: spendableAfter(simulated, terms, vaults.rentMinimum),
      rent: part.sweeps.length > 0 && rent !== undefined && rent > expectedRent ? rent : expectedRent,
      moved,
      remaining: without(chooseSweeps(sweeps, vaults, maxRent), part.sweeps),
    };
  }

  return { simulate, simulateAlone, movedIfEnough, priceOf, termsOf, spendableAfter };
}

/** Throws {@link CollectError} `fee-payer-short` if that is why a simulation failed. */
export function assertFeePayerPays(err: TransactionError): void {
  if (!isFeePayerShort(err)) return;
  const detail = `the simulation failed: ${JSON.stringify(err)}`;
  throw new CollectError({ kind: "fee-payer-short", detail });
}

function without(sweeps: readonly Sweep[], some: readonly Sweep[]): Sweep[] {
  return sweeps.filter(
    ({ coin, stage }) => !some.some((each) => each.coin.mint === coin.mint && each.stage === stage),
  );
}

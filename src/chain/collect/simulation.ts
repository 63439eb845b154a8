import { VersionedTransaction, type PublicKey } from "@solana/web3.js";
import type { Logger } from "../../observability/log.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { Balances } from "../balances.ts";
import { CollectError } from "../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../lamports.ts";
import { BASE_FEE_LAMPORTS, choosePrice, priorityFee, type PricePolicy } from "../priority-fee.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { isFeePayerShort, isReceiverBelowRent, type TransactionError } from "../rpc/transaction-error.ts";
import {
  chooseSweeps,
  collectableWith,
  inAmm,
  isRentAcceptable,
  type ChosenSweep,
  type Sweep,
  type Vaults,
} from "../sweeps.ts";
import type { NamedWallet } from "../wallets.ts";
import type { CollectPart, Composer, TransactionTerms } from "./sign/message.ts";

/** A transaction that succeeds in the simulation. */
interface Simulation {
  readonly parts: readonly CollectPart[];
  /** Without a guard. */
  readonly terms: Omit<TransactionTerms, "guard">;
  /** The fee payer's lamports above its rent-exempt minimum, after all fees and rents; undefined when unknown. */
  readonly spendable: bigint | undefined;
  /** The most that the fee payer pays besides the fee. */
  readonly rent: Lamports;
  /** The lamports that the vaults and coins lose. */
  readonly moved: Lamports;
  /** The lamports at the address that its owner cannot withdraw. */
  readonly reserved: Lamports;
  /** The sweeps that another collect would do. */
  readonly remaining: readonly Sweep[];
}

/** What a simulated transaction did. */
interface Simulated {
  readonly err: TransactionError | null;
  readonly logs: readonly string[];
  readonly unitsConsumed: number | undefined;
  /** Undefined when unknown. */
  readonly vaultAfter: Lamports | undefined;
  readonly feePayerAfter: Lamports | undefined;
  /** What the fee payer lost besides the base fee; undefined when unknown. */
  readonly rent: Lamports | undefined;
}

/** Far above what a collect and a sweep use. Also the basis of the real limit when the node does not report the used units. */
const SIMULATION_UNIT_LIMIT = 400_000;
const SIMULATION_UNIT_LIMIT_PER_SWEEP = 150_000;
/** The chain's limit for a transaction. */
const MAX_UNIT_LIMIT = 1_400_000;
const UNIT_LIMIT_MARGIN = 1.2;
/**
 * The lowest limits. An instruction uses less when its vault is empty, the AMM's almost none: the simulation may see
 * it empty, and fees may arrive before the transaction lands. On the sandbox a collect uses about 4,600 units, the
 * AMM's part 28,000 more.
 */
const MIN_UNIT_LIMIT = 10_000;
const MIN_UNIT_LIMIT_WITH_AMM = 60_000;
/** How often a collect is simulated with sweeps; then it leaves them all out. */
const MAX_SIMULATIONS_WITH_SWEEPS = 8;

export type Simulator = ReturnType<typeof createSimulator>;

/** Simulates collects, to choose what their transactions do. */
export function createSimulator(
  needs: PricePolicy & {
    rpc: Rpc;
    balances: Balances;
    composer: Composer;
    payer: PublicKey;
    minLamports: Lamports;
    /** The most rent that one collect may pay. */
    maxRent: Lamports;
    log: Logger;
  },
) {
  const { rpc, balances, composer, payer, minLamports, maxRent, log } = needs;

  /**
   * Simulates a collect of an account and its coins; undefined when it would move less than `minLamports`, or leave
   * the address below its rent-exempt minimum. Leaves out what makes the simulation fail, or costs too much rent: a
   * sweep, or the AMM's vault if the creator vault alone has enough. Throws {@link CollectError} `fee-payer-short` or
   * `simulation-failed`.
   */
  async function simulate(wallet: NamedWallet): Promise<Simulation | undefined> {
    const { account } = wallet;
    const fees = await balances.getUncollectedFees(wallet);
    let { vaults, sweeps } = fees;
    let failure: CollectError | undefined;

    function leaveOut(left: Sweep | "amm" | "sweeps", error: unknown): void {
      const { address } = account;
      if (left === "amm") {
        log.warn(
          { address, err: error },
          "a collect leaves out the AMM's fees, because its simulation fails with them: check LAUNCHPAD_AMM_PROGRAM_ID",
        );
        vaults = { ...vaults, ammVault: toLamports(0) };
        sweeps = sweeps.filter(({ stage }) => stage === "CURVE");
      } else {
        const isLeft = (sweep: Sweep) => left === "sweeps" || isSame(sweep, left);
        const mints = sweeps.filter(isLeft).map(({ coin }) => coin.mint);
        log.warn(
          { address, mints, err: error },
          "a collect leaves out coins, because their sweeps fail or cost too much",
        );
        sweeps = sweeps.filter((sweep) => !isLeft(sweep));
      }
    }

    for (let simulations = 1; ; simulations++) {
      const part = toPart(account, sweeps, vaults);
      if (collectableWith(part.sweeps, vaults) < minLamports) {
        if (failure) throw failure;
        return undefined;
      }
      const simulated = await simulateParts([part]);
      const { err, logs } = simulated;
      if (err === null) {
        const tooDear = findTooDear(part, simulated.rent);
        if (!tooDear) return toSimulation(part, vaults, sweeps, simulated, fees.reserved);
        leaveOut(tooDear, new Error(`the simulation costs the fee payer ${simulated.rent} lamports of rent`));
        continue;
      }
      const error = new CollectError({ kind: "simulation-failed", err, logs });
      const culprit = composer.findCulprit([part], SIMULATION_TERMS, err);
      const isSweep = typeof culprit?.step === "object";
      if (!isSweep && isReceiverBelowRent(err)) return undefined;
      if (isFeePayerShort(err)) {
        const detail = `the simulation failed: ${JSON.stringify(err)}`;
        throw new CollectError({ kind: "fee-payer-short", detail });
      }
      if (part.sweeps.length > 0 && simulations >= MAX_SIMULATIONS_WITH_SWEEPS) leaveOut("sweeps", error);
      else if (culprit && typeof culprit.step === "object") leaveOut(culprit.step, error);
      else if (part.withAmm && (culprit?.step === "amm" || part.sweeps.length === 0)) {
        failure = error;
        leaveOut("amm", error);
      } else if (part.sweeps.length > 0) leaveOut("sweeps", error);
      else throw error;
    }
  }

  /** What a transaction does for an account: the largest sweeps that fit into it, and whose rent is not too high. */
  function toPart(account: AccountAddresses, sweeps: readonly Sweep[], vaults: Vaults): CollectPart {
    const chosen = chooseSweeps(sweeps, vaults, maxRent, (some) => {
      const withAmm = some.some(({ stage }) => stage === "POOL") || inAmm(some, vaults) > 0n;
      return rentOf(some) <= maxRent && composer.fits([{ account, sweeps: some, withAmm }]);
    });
    return { account, sweeps: chosen, withAmm: inAmm(chosen, vaults) > 0n };
  }

  /**
   * A sweep to leave out because of the rent that the simulation shows. What was expected is acceptable for each
   * sweep. The sum alone does not show which sweep costs more, so all of it must be acceptable for the smallest.
   */
  function findTooDear({ sweeps }: CollectPart, rent: Lamports | undefined): Sweep | "sweeps" | undefined {
    if (sweeps.length === 0) return undefined;
    if (rent === undefined) return "sweeps";
    if (rent <= rentOf(sweeps)) return undefined;
    const smallest = sweeps.reduce((a, b) => (b.amount < a.amount ? b : a));
    return rent <= maxRent && isRentAcceptable(rent, smallest.amount) ? undefined : smallest;
  }

  async function simulateParts(parts: readonly CollectPart[]): Promise<Simulated> {
    const sweeps = parts.flatMap((part) => part.sweeps);
    const unitLimit = SIMULATION_UNIT_LIMIT + sweeps.length * SIMULATION_UNIT_LIMIT_PER_SWEEP;
    const message = composer.compose(parts, {
      ...SIMULATION_TERMS,
      unitLimit: Math.min(unitLimit, MAX_UNIT_LIMIT),
    });
    const base64 = Buffer.from(new VersionedTransaction(message).serialize()).toString("base64");
    const [simulated, [before] = []] = await Promise.all([
      rpc.simulateTransaction(base64, [parts[0]!.account.creatorVault, payer.toBase58()]),
      // Without sweeps nothing uses the fee payer's account.
      sweeps.length > 0 ? rpc.getAccounts([[payer.toBase58()]]).then((groups) => groups[0]) : [],
    ]);
    const { err, logs, unitsConsumed } = simulated;
    const [vaultAfter, feePayerAfter] = simulated.balances ?? [];
    const rent =
      before && feePayerAfter !== undefined
        ? saturatingSubtract(before.lamports, toLamports(feePayerAfter + BASE_FEE_LAMPORTS))
        : undefined;
    return { err, logs, unitsConsumed, vaultAfter, feePayerAfter, rent };
  }

  async function toSimulation(
    part: CollectPart,
    vaults: Vaults,
    sweeps: readonly Sweep[],
    { unitsConsumed, vaultAfter, feePayerAfter, rent }: Simulated,
    reserved: Lamports,
  ): Promise<Simulation | undefined> {
    const { account, withAmm } = part;
    // Compare what the vaults and coins lose, not what the address gains: its owner may withdraw at any moment.
    const expected = collectableWith(part.sweeps, vaults);
    const kept = saturatingSubtract(vaultAfter ?? vaults.rentMinimum, vaults.rentMinimum);
    const moved = saturatingSubtract(expected, kept);
    if (moved < minLamports) return undefined;

    const units = Math.ceil((unitsConsumed || SIMULATION_UNIT_LIMIT) * UNIT_LIMIT_MARGIN);
    const unitLimit = Math.min(
      Math.max(units, withAmm ? MIN_UNIT_LIMIT_WITH_AMM : MIN_UNIT_LIMIT),
      MAX_UNIT_LIMIT,
    );
    const places = part.sweeps.map(({ coin, stage }) => (stage === "CURVE" ? coin.curve : coin.pool));
    const writable = [
      account.address,
      account.creatorVault,
      ...(withAmm ? [account.ammVault] : []),
      ...places,
    ];
    const price = await choosePrice(rpc, writable, unitLimit, needs);
    // The simulation pays the base fee only: the priority fee depends on the units that it measures.
    const fee = priorityFee(price, unitLimit);
    const spendable = feePayerAfter === undefined ? undefined : feePayerAfter - fee - vaults.rentMinimum;
    const expectedRent = rentOf(part.sweeps);
    return {
      parts: [part],
      terms: { unitLimit, price },
      spendable,
      rent: part.sweeps.length > 0 && rent !== undefined && rent > expectedRent ? rent : expectedRent,
      moved,
      reserved,
      remaining: chooseSweeps(sweeps, vaults, maxRent).filter(
        (sweep) => !part.sweeps.some((done) => isSame(done, sweep)),
      ),
    };
  }

  return { simulate };
}

const SIMULATION_TERMS: TransactionTerms = { unitLimit: SIMULATION_UNIT_LIMIT, price: 0n, guard: 1n };

function isSame(a: Sweep, b: Sweep): boolean {
  return a.coin.mint === b.coin.mint && a.stage === b.stage;
}

function rentOf(sweeps: readonly ChosenSweep[]): Lamports {
  return toLamports(sweeps.reduce((sum, { rent }) => sum + rent, 0n));
}

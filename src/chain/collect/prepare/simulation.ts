import type { Logger } from "../../../observability/log.ts";
import type { AccountAddresses } from "../../addresses.ts";
import type { Balances, UncollectedFees } from "../../balances.ts";
import { CollectError } from "../../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import { isReceiverBelowRent } from "../../rpc/transaction-error.ts";
import {
  chooseSweeps,
  collectableWith,
  inAmm,
  isRentAcceptable,
  type ChosenSweep,
  type Sweep,
  type Vaults,
} from "../../sweeps.ts";
import type { NamedWallet } from "../../wallets.ts";
import type { CollectPart, Composer, TransactionTerms } from "../sign/message.ts";
import {
  assertFeePayerPays,
  SIMULATION_TERMS,
  type PartsSimulator,
  type Simulated,
} from "./simulate-parts.ts";

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

/** Fees that are worth a collect. */
export interface Prospect {
  readonly wallet: NamedWallet;
  readonly fees: UncollectedFees;
  /** What a transaction does for the account, unless its simulation fails. */
  readonly part: CollectPart;
}

/** From this simulation on, one that fails leaves out all sweeps. */
const MAX_SIMULATIONS_WITH_SWEEPS = 8;

export type Simulator = ReturnType<typeof createSimulator>;

/** Simulates collects, to choose what their transactions do. */
export function createSimulator(needs: {
  balances: Balances;
  composer: Composer;
  partsSimulator: PartsSimulator;
  minLamports: Lamports;
  /** The most rent that one collect may pay. */
  maxRent: Lamports;
  log: Logger;
}) {
  const { balances, composer, partsSimulator, minLamports, maxRent, log } = needs;

  /** Reads an account's fees; undefined when a collect would move less than `minLamports`. */
  async function find(wallet: NamedWallet): Promise<Prospect | undefined> {
    const fees = await balances.getUncollectedFees(wallet);
    const part = toPart(wallet.account, fees.sweeps, fees.vaults);
    return collectableWith(part.sweeps, fees.vaults) < minLamports ? undefined : { wallet, fees, part };
  }

  /** What a simulated transaction moves for a part; undefined when that is less than `minLamports`. */
  function movedBy(
    part: CollectPart,
    vaults: Vaults,
    vaultAfter: Lamports | undefined,
  ): Lamports | undefined {
    // Compare what the vaults and coins lose, not what the address gains: its owner may withdraw at any moment.
    const kept = saturatingSubtract(vaultAfter ?? vaults.rentMinimum, vaults.rentMinimum);
    const moved = saturatingSubtract(collectableWith(part.sweeps, vaults), kept);
    return moved < minLamports ? undefined : moved;
  }

  /**
   * Simulates a collect of an account and its coins; undefined when it would move less than `minLamports`, or leave
   * the address below its rent-exempt minimum. Leaves out what makes the simulation fail, or costs too much rent: a
   * sweep, or the AMM's vault if the creator vault alone has enough. Throws {@link CollectError} `fee-payer-short` or
   * `simulation-failed`.
   */
  async function simulate({ wallet, fees }: Prospect): Promise<Simulation | undefined> {
    const { account } = wallet;
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
          "a collect leaves out coins, because their sweeps fail or cost too much: if this happens for every coin, check LAUNCHPAD_PROGRAM_ID and LAUNCHPAD_AMM_PROGRAM_ID",
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
      const simulated = await partsSimulator.simulate([part]);
      const { err, logs } = simulated;
      if (err === null) {
        const tooExpensive = findTooExpensive(part, simulated.rent);
        if (!tooExpensive) return toSimulation(part, vaults, sweeps, simulated, fees.reserved);
        leaveOut(
          tooExpensive,
          new Error(`the fee payer's rent in the simulation, in lamports: ${simulated.rent ?? "unknown"}`),
        );
        continue;
      }
      const error = new CollectError({ kind: "simulation-failed", err, logs });
      const culprit = composer.findCulprit([part], SIMULATION_TERMS, err);
      const isSweep = typeof culprit?.step === "object";
      if (!isSweep && isReceiverBelowRent(err)) return undefined;
      assertFeePayerPays(err);
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
   * A sweep to leave out because the simulation shows more rent than expected. The sum does not show which
   * sweep costs more, so all of it must be acceptable for the smallest one.
   */
  function findTooExpensive(
    { sweeps }: CollectPart,
    rent: Lamports | undefined,
  ): Sweep | "sweeps" | undefined {
    if (sweeps.length === 0) return undefined;
    if (rent === undefined) return "sweeps";
    if (rent <= rentOf(sweeps)) return undefined;
    const smallest = sweeps.reduce((a, b) => (b.amount < a.amount ? b : a));
    return rent <= maxRent && isRentAcceptable(rent, smallest.amount) ? undefined : smallest;
  }

  async function toSimulation(
    part: CollectPart,
    vaults: Vaults,
    sweeps: readonly Sweep[],
    simulated: Simulated,
    reserved: Lamports,
  ): Promise<Simulation | undefined> {
    const { rent } = simulated;
    const moved = movedBy(part, vaults, simulated.vaultsAfter?.[0]);
    if (moved === undefined) return undefined;

    const unitLimit = partsSimulator.unitLimitOf([part], simulated);
    const price = await partsSimulator.priceOf([part], unitLimit);
    const terms = { unitLimit, price };
    const expectedRent = rentOf(part.sweeps);
    return {
      parts: [part],
      terms,
      spendable: partsSimulator.spendableAfter(simulated, terms, vaults.rentMinimum),
      rent: part.sweeps.length > 0 && rent !== undefined && rent > expectedRent ? rent : expectedRent,
      moved,
      reserved,
      remaining: chooseSweeps(sweeps, vaults, maxRent).filter(
        (sweep) => !part.sweeps.some((done) => isSame(done, sweep)),
      ),
    };
  }

  return { find, movedBy, simulate };
}

function isSame(a: Sweep, b: Sweep): boolean {
  return a.coin.mint === b.coin.mint && a.stage === b.stage;
}

function rentOf(sweeps: readonly ChosenSweep[]): Lamports {
  return toLamports(sweeps.reduce((sum, { rent }) => sum + rent, 0n));
}

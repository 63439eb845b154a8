import type { Logger } from "../../../observability/log.ts";
import { CollectError } from "../../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import { BASE_FEE_LAMPORTS, priorityFee } from "../../priority-fee.ts";
import { isReceiverBelowRent } from "../../rpc/transaction-error.ts";
import { partOf } from "../../shared-fees.ts";
import {
  chooseSweeps,
  distributionsOf,
  isRentAcceptable,
  rentOf,
  withoutPools,
  type Distribution,
  type Sweep,
  type Vaults,
} from "../../sweeps.ts";
import type { WaitingFees } from "../landed-outcome.ts";
import type { CollectPart, Composer } from "../message/composer.ts";
import type { Prospect, Prospects } from "./prospect.ts";
import {
  assertFeePayerPays,
  SIMULATION_TERMS,
  type Price,
  type Simulated,
  type Simulator,
} from "./simulator.ts";

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
  /** What another collect would move. */
  readonly remaining: readonly WaitingFees[];
}

/** What the simulations of a collect leave out, and why the last of it. */
interface LeftOut {
  readonly mints: Set<string>;
  hasAmm: boolean;
  error: Error | undefined;
}

/** From this simulation on, one that fails leaves out all sweeps. */
const MAX_SIMULATIONS_WITH_SWEEPS = 8;

export type SimulateAlone = ReturnType<typeof createSimulateAlone>;

/**
 * Returns a function that simulates a collect of an account and its coins; undefined when it would move less than
 * `minLamports`, or leave the address below its rent-exempt minimum. Leaves out what makes the simulation fail, or costs
 * too much: a sweep, or the AMM's vault if the creator vault alone has enough. Throws {@link CollectError}
 * `fee-payer-short` or `simulation-failed`.
 */
export function createSimulateAlone(needs: {
  simulator: Simulator;
  composer: Composer;
  prospects: Prospects;
  minLamports: Lamports;
  /** The most rent that one collect may pay. */
  maxRent: Lamports;
  log: Logger;
}) {
  const { simulator, composer, prospects, minLamports, maxRent, log } = needs;

  /**
   * The sweep to leave out because the simulation shows more rent than expected. The sum does not show which
   * sweep costs more, so all of it must be acceptable for the smallest one.
   */
  function findTooExpensive({ sweeps }: CollectPart, rent = toLamports(0)): Sweep[] {
    if (rent <= rentOf(sweeps)) return [];
    const smallest = sweeps.reduce((a, b) => (b.amount < a.amount ? b : a));
    return rent <= maxRent && isRentAcceptable(rent, smallest.amount) ? [] : [smallest];
  }

  /** The distributions that pay the account less than a collect must move, or less than the transaction costs. */
  function findUnpaid(
    { account, sweeps }: CollectPart,
    { sharedVaultsAfter }: Simulated,
    { unitLimit, price }: Price,
    { rentMinimum }: Vaults,
  ): Distribution[] {
    const fee = BASE_FEE_LAMPORTS + priorityFee(price, unitLimit);
    return distributionsOf(sweeps).filter((distribution, i) => {
      const gain = gainOf(distribution, sharedVaultsAfter?.[i], account.address, rentMinimum);
      return gain < minLamports || gain < fee + distribution.rent;
    });
  }

  function toSimulation(
    part: CollectPart,
    vaults: Vaults,
    sweeps: readonly Sweep[],
    simulated: Simulated,
    terms: Price,
  ): Simulation | undefined {
    const { rent } = simulated;
    const moved = simulator.movedIfEnough(part, vaults, simulated.vaultsAfter?.[0]);
    if (moved === undefined) return undefined;
    const expectedRent = rentOf(part.sweeps);
    return {
      part,
      terms,
      spendable: simulator.spendableAfter(simulated, terms, vaults.rentMinimum),
      rent: part.sweeps.length > 0 && rent !== undefined && rent > expectedRent ? rent : expectedRent,
      moved,
      remaining: chooseSweeps(sweeps, vaults, maxRent).flatMap(({ coin, stage, amount }) => {
        const done = part.sweeps.find((each) => each.coin.mint === coin.mint && each.stage === stage);
        const left = saturatingSubtract(amount, done?.amount ?? toLamports(0));
        return left > 0n ? [{ mint: coin.mint, amount: left }] : [];
      }),
    };
  }

  async function simulateWithout(
    { wallet, fees }: Prospect,
    leftOut: LeftOut,
  ): Promise<Simulation | undefined> {
    const { account } = wallet;
    const { address } = account;
    let { vaults, sweeps } = fees;
    let failure: CollectError | undefined;

    function leaveOutAmm(error: CollectError): void {
      Object.assign(leftOut, { hasAmm: true, error });
      failure = error;
      vaults = { ...vaults, ammVault: toLamports(0) };
      sweeps = withoutPools(sweeps);
    }

    function leaveOut(some: readonly Sweep[], error: Error): void {
      for (const { coin } of some) leftOut.mints.add(coin.mint);
      leftOut.error = error;
      sweeps = without(sweeps, some);
    }

    for (let simulations = 1; ; simulations++) {
      const part = prospects.choosePart(account, sweeps, vaults);
      if (!part) {
        if (failure) throw failure;
        return undefined;
      }
      const hasSweeps = part.sweeps.length > 0;
      const simulated = await simulator.simulate([part]);
      const { err, logs, rent } = simulated;
      if (err === null) {
        const tooExpensive = hasSweeps && rent === undefined ? sweeps : findTooExpensive(part, rent);
        if (tooExpensive.length > 0) {
          const text = `the fee payer's rent in the simulation, in lamports: ${rent ?? "unknown"}`;
          leaveOut(tooExpensive, new Error(text));
          continue;
        }
        const terms = await simulator.termsOf([part], simulated);
        const unpaid = findUnpaid(part, simulated, terms, vaults);
        if (unpaid.length === 0) return toSimulation(part, vaults, sweeps, simulated, terms);
        log.debug({ address, mints: unpaid.map(({ coin }) => coin.mint) }, "distributions pay too little");
        sweeps = without(sweeps, unpaid);
        continue;
      }
      const error = new CollectError({
        kind: "simulation-failed",
        err,
        programError: lastProgramError(logs),
      });
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

  return async (prospect: Prospect): Promise<Simulation | undefined> => {
    const leftOut: LeftOut = { mints: new Set(), hasAmm: false, error: undefined };
    const simulation = await simulateWithout(prospect, leftOut);
    const { mints, hasAmm, error } = leftOut;
    if (error) {
      const what = [...(hasAmm ? ["the AMM's fees"] : []), ...(mints.size > 0 ? ["coins"] : [])].join(
        " and ",
      );
      log.warn(
        { address: prospect.wallet.account.address, mints: [...mints], err: error },
        `a collect leaves out ${what}, because they fail its simulation or cost too much: if every collect does, check LAUNCHPAD_PROGRAM_ID and LAUNCHPAD_AMM_PROGRAM_ID`,
      );
    }
    return simulation;
  };
}

/**
 * What a distribution pays to the address in a simulation, by what is left of what was read before: below its minimum, the
 * launch platform leaves all of it. 0 if that is unknown.
 */
function gainOf(
  { distributable, shareholders }: Distribution,
  after: Lamports | undefined,
  address: string,
  rentMinimum: Lamports,
): bigint {
  if (after === undefined) return 0n;
  return partOf(
    saturatingSubtract(distributable, saturatingSubtract(after, rentMinimum)),
    shareholders,
    address,
  );
}

function without(sweeps: readonly Sweep[], some: readonly Sweep[]): Sweep[] {
  return sweeps.filter(
    ({ coin, stage }) => !some.some((each) => each.coin.mint === coin.mint && each.stage === stage),
  );
}

/** The runtime's last line about a program that failed. The programs' own lines may be many, and hold anything. */
function lastProgramError(logs: readonly string[]): string | undefined {
  return logs.findLast((line) => /^Program \w+ failed: /.test(line));
}

import type { Logger } from "../../../observability/log.ts";
import type { CoinFindings } from "../../coin-findings.ts";
import { CollectError } from "../../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import { BASE_FEE_LAMPORTS, priorityFee } from "../../priority-fee.ts";
import {
  failedInstruction,
  isReceiverBelowRent,
  type TransactionError,
} from "../../rpc/transaction-error.ts";
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
  type WaitingFees,
} from "../../sweeps.ts";
import type { CollectPart, Composer } from "../message/composer.ts";
import type { Candidate, Prospects } from "./prospect.ts";
import { assertFeePayerPays, type Price, type Simulated, type Simulator } from "./simulator.ts";

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

/** From this simulation on, one that fails leaves out all sweeps. Enough to try each coin of a request by itself. */
const MAX_SIMULATIONS_WITH_SWEEPS = 12;

/** What a collect leaves out, for its one line in the log. */
interface LeftOut {
  readonly mints: Set<string>;
  hasAmm: boolean;
  /** The last reason. */
  error: Error | undefined;
}

export type SimulateAlone = ReturnType<typeof createSimulateAlone>;

/**
 * Returns a function that simulates a collect of an account and its coins; undefined when it would move less than
 * `minLamports`, or leave the address below its rent-exempt minimum. Leaves out what makes the simulation fail, or costs
 * too much: a sweep, or the AMM's vault if the creator vault alone has enough. If no sweep can be named, tries half of
 * them, then the other half. Throws {@link CollectError} `fee-payer-short` or `simulation-failed`.
 */
export function createSimulateAlone(needs: {
  simulator: Simulator;
  composer: Composer;
  prospects: Prospects;
  minLamports: Lamports;
  findings: Pick<CoinFindings, "found" | "foundInAmm">;
  /** The most rent that one collect may pay. */
  maxRent: Lamports;
  log: Logger;
}) {
  const { simulator, composer, prospects, minLamports, findings, maxRent, log } = needs;

  /**
   * The sweep to leave out because the simulation shows more rent than expected. The sum does not show which
   * sweep costs more, so all of it must be acceptable for the smallest one.
   */
  function findTooExpensive({ sweeps }: CollectPart, rent = toLamports(0)): Sweep[] {
    if (rent <= rentOf(sweeps)) return [];
    const smallest = sweeps.reduce((a, b) => (b.amount < a.amount ? b : a));
    return rent <= maxRent && isRentAcceptable(rent, smallest.amount) ? [] : [smallest];
  }

  /**
   * The distributions that pay the account less than a collect must move, or less than the transaction costs. Remembers
   * of which the launch platform pays nobody: that is so for all who share the fees.
   */
  function findUnpaid(
    { account, sweeps }: CollectPart,
    { sharedVaultsAfter, leftInAmm }: Simulated,
    { unitLimit, price }: Price,
    { rentMinimum }: Vaults,
  ): Distribution[] {
    const fee = BASE_FEE_LAMPORTS + priorityFee(price, unitLimit);
    return distributionsOf(sweeps).filter((distribution, i) => {
      const { coin, shareholders, distributable } = distribution;
      const after = sharedVaultsAfter?.[i];
      // Below its minimum, the launch platform leaves all of it.
      const inVault = after === undefined ? distributable : saturatingSubtract(after, rentMinimum);
      const left = toLamports(inVault + (leftInAmm.get(coin.sharingConfig.ammVault) ?? 0n));
      const distributed = saturatingSubtract(distributable, left);
      findings.found(coin.mint, distributed < minLamports ? "BELOW_SHARING_MINIMUM" : undefined, left);
      const gain = partOf(distributed, shareholders, account.address);
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
    const moved = simulator.movedIfEnough(part, vaults, simulated);
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
    { prospect: { wallet, fees }, mayDo }: Candidate,
    leftOut: LeftOut,
  ): Promise<Simulation | undefined> {
    const { account } = wallet;
    let { vaults } = fees;
    let sweeps = fees.sweeps.filter(mayDo);
    let failure: CollectError | undefined;
    /** Sweeps to try, the last first, once nothing is left of `sweeps`. */
    const others: Sweep[][] = [];

    function leaveOutAmm(error?: CollectError): void {
      if (error) Object.assign(leftOut, { hasAmm: true, error });
      failure = error;
      vaults = { ...vaults, ammVault: toLamports(0) };
      sweeps = withoutPools(sweeps);
      for (const [i, some] of others.entries()) others[i] = withoutPools(some);
    }

    function leaveOut(some: readonly Sweep[], error: Error): void {
      for (const { coin } of some) leftOut.mints.add(coin.mint);
      leftOut.error = error;
      sweeps = without(sweeps, some);
    }

    /** The sweeps make a simulation fail, but none by itself is known to. */
    function leaveOutHalf(some: readonly Sweep[], error: Error, err: TransactionError): void {
      const mints = [...new Set(some.map(({ coin }) => coin.mint))];
      if (mints.length < 2) {
        blame(some, error, err);
        return;
      }
      const half = Math.ceil(mints.length / 2);
      const among = (wanted: readonly string[]) => sweeps.filter(({ coin }) => wanted.includes(coin.mint));
      const [first, second] = [among(mints.slice(0, half)), among(mints.slice(half))];
      others.push(without(sweeps, [...first, ...second]), second);
      sweeps = first;
    }

    function blame(some: readonly Sweep[], error: Error, err: TransactionError): void {
      const blocked = isOfShareholders(err) ? distributionsOf(some) : [];
      for (const { coin } of blocked) findings.found(coin.mint, "SHAREHOLDER_BLOCKED");
      leaveOut(some, error);
    }

    for (let simulations = 1; ; simulations++) {
      let part = prospects.choosePart(account, sweeps, vaults);
      while (others.length > 0 && !(part && part.sweeps.length > 0)) {
        sweeps = others.pop()!;
        part = prospects.choosePart(account, sweeps, vaults);
      }
      if (!part) {
        if (failure) throw failure;
        return undefined;
      }
      const hasSweeps = part.sweeps.length > 0;
      const simulated = await simulator.simulate([part]);
      const { err, logs, rent, simulatedTerms } = simulated;
      if (err === null) {
        const tooExpensive = hasSweeps && rent === undefined ? sweeps : findTooExpensive(part, rent);
        if (tooExpensive.length > 0) {
          const text = `the fee payer's rent in the simulation, in lamports: ${rent ?? "unknown"}`;
          leaveOut(tooExpensive, new Error(text));
          continue;
        }
        for (const [ammVault, left] of simulated.leftInAmm) findings.foundInAmm(ammVault, left);
        if (simulated.leftInAmm.get(account.ammVault)) {
          leaveOutAmm();
          continue;
        }
        const terms = await simulator.termsOf([part], simulated);
        const unpaid = findUnpaid(part, simulated, terms, vaults);
        if (unpaid.length === 0) {
          const unlocked = fees.sweeps.filter((sweep) => !mayDo(sweep));
          return toSimulation(part, vaults, [...sweeps, ...others.flat(), ...unlocked], simulated, terms);
        }
        for (const { coin } of unpaid) leftOut.mints.add(coin.mint);
        log.debug(
          { address: account.address, mints: unpaid.map(({ coin }) => coin.mint) },
          "distributions pay too little",
        );
        sweeps = without(sweeps, unpaid);
        continue;
      }
      const programError = lastProgramError(logs);
      const error = new CollectError({ kind: "simulation-failed", err, programError });
      const steps = composer.findCulprits([part], simulatedTerms, err).map(({ step }) => step);
      const culprits = steps.flatMap((step) => (step.kind === "sweep" ? step.sweep : []));
      if (culprits.length === 0 && isReceiverBelowRent(err)) return undefined;
      assertFeePayerPays(err);
      if (hasSweeps && simulations >= MAX_SIMULATIONS_WITH_SWEEPS) {
        leaveOut([...sweeps, ...others.splice(0).flat()], error);
        sweeps = [];
      } else if (culprits.length > 0) blame(culprits, error, err);
      else if (part.withAmm && (steps[0]?.kind === "amm" || !hasSweeps)) leaveOutAmm(error);
      else if (hasSweeps) leaveOutHalf(part.sweeps, error, err);
      else throw error;
    }
  }

  return async (candidate: Candidate): Promise<Simulation | undefined> => {
    const leftOut: LeftOut = { mints: candidate.leftOut, hasAmm: false, error: undefined };
    const simulation = await simulateWithout(candidate, leftOut);
    const { mints, hasAmm, error } = leftOut;
    if (error) {
      const coins = mints.size > 0 ? ["coins"] : [];
      const what = [...(hasAmm ? ["the AMM's fees"] : []), ...coins].join(" and ");
      log.warn(
        { address: candidate.prospect.wallet.account.address, mints: [...mints], err: error },
        `a collect leaves out ${what}, because they fail its simulation or cost too much: if every collect does, the launch platform has changed, so install a new version`,
      );
    }
    return simulation;
  };
}

/** Whether a distribution failed because of who its shareholders are, as reading their accounts does not show. */
function isOfShareholders(err: TransactionError): boolean {
  return failedInstruction(err) !== undefined || err === "MaxLoadedAccountsDataSizeExceeded";
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

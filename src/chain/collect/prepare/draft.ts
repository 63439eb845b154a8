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
  collectableWith,
  distributionsOf,
  isRentAcceptable,
  rentOf,
  withoutPools,
  type Distribution,
  type Sweep,
  type WaitingFees,
} from "../../sweeps.ts";
import type { CollectPart, Culprit } from "../message/composer.ts";
import type { Candidate, Prospects } from "./prospect.ts";
import type { Price, Simulated } from "./simulator.ts";

/** Once so many simulations have failed, all sweeps are left out. Enough to try each coin of a request by itself. */
const MAX_FAILED = 12;

export type Draft = ReturnType<ReturnType<typeof createDrafts>>;

/**
 * Returns a function that drafts what a transaction does for a candidate. A draft leaves out what makes a simulation
 * fail, or costs too much: a sweep, or the AMM's vault if the creator vault alone has enough. If no sweep can be named,
 * it tries half of them, then the other half.
 */
export function createDrafts(needs: {
  prospects: Prospects;
  minCollectLamports: Lamports;
  findings: Pick<CoinFindings, "found" | "foundInAmm">;
  /** The most rent that one collect may pay. */
  maxRentLamports: Lamports;
  log: Logger;
}) {
  const { prospects, minCollectLamports, findings, maxRentLamports, log } = needs;

  /**
   * The sweep to leave out because the simulation shows more rent than expected. The sum does not show which
   * sweep costs more, so all of it must be acceptable for the smallest one.
   */
  function findTooExpensive({ sweeps }: CollectPart, rent: Lamports): Sweep[] {
    if (rent <= rentOf(sweeps)) return [];
    const smallest = sweeps.reduce((a, b) => (b.amount < a.amount ? b : a));
    return rent <= maxRentLamports && isRentAcceptable(rent, smallest.amount) ? [] : [smallest];
  }

  /**
   * The distributions that pay the account less than a collect must move, or less than the transaction costs. Remembers
   * of which the launch platform pays nobody: that is so for all who share the fees.
   */
  function findUnpaid(
    { account, sweeps }: CollectPart,
    { after, leftInAmm }: Simulated,
    { unitLimit, price }: Price,
    rentMinimum: Lamports,
  ): Distribution[] {
    const fee = BASE_FEE_LAMPORTS + priorityFee(price, unitLimit);
    return distributionsOf(sweeps).filter(({ coin, shareholders, distributable, rent }) => {
      const { creatorVault, ammVault } = coin.sharingConfig;
      const held = after(creatorVault);
      // Below its minimum, the launch platform leaves all of it.
      const inVault = held === undefined ? distributable : saturatingSubtract(held, rentMinimum);
      const left = toLamports(inVault + (leftInAmm.get(ammVault) ?? 0n));
      const distributed = saturatingSubtract(distributable, left);
      findings.found(coin.mint, distributed < minCollectLamports ? "BELOW_SHARING_MINIMUM" : undefined, left);
      const gain = partOf(distributed, shareholders, account.address);
      return gain < minCollectLamports || gain < fee + rent;
    });
  }

  return (candidate: Candidate) => {
    const { prospect, mayDo, leftOut } = candidate;
    const { fees, wallet } = prospect;
    const { account } = wallet;
    const { address, creatorVault, ammVault } = account;
    const { rentMinimum } = fees.vaults;
    let { vaults } = fees;
    let sweeps = fees.sweeps.filter(mayDo);
    /** Sweeps to try, the last first, once nothing is left of `sweeps`. */
    let others: Sweep[][] = [];
    let hasGivenUp = false;
    let failure: CollectError | undefined;
    let failed = 0;
    /** Why something is left out, for one line in the log: the last reason. */
    let logged: Error | undefined;
    let hasLoggedAmm = false;

    function leaveOut(some: readonly Sweep[], error?: Error): void {
      for (const { coin } of some) leftOut.add(coin.mint);
      logged = error ?? logged;
      sweeps = without(sweeps, some);
    }

    function leaveOutAmm(error?: CollectError): void {
      logged = error ?? logged;
      hasLoggedAmm ||= error !== undefined;
      failure = error;
      vaults = { ...vaults, ammVault: toLamports(0) };
      sweeps = withoutPools(sweeps);
      others = others.map(withoutPools);
    }

    function blame(some: readonly Sweep[], error: Error, err: TransactionError): void {
      const blocked = isOfShareholders(err) ? distributionsOf(some) : [];
      for (const { coin } of blocked) findings.found(coin.mint, "SHAREHOLDER_BLOCKED");
      leaveOut(some, error);
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

    /** What a simulated transaction moves for the account. */
    function movedBy(part: CollectPart, { after, leftInAmm }: Simulated): Lamports {
      // Compare what the vaults and coins lose, not what the address gains: its owner may withdraw at any moment.
      const left = part.withVaults ? (after(creatorVault) ?? rentMinimum) : rentMinimum;
      const kept = saturatingSubtract(left, rentMinimum) + (leftInAmm.get(ammVault) ?? 0n);
      return saturatingSubtract(collectableWith(part.sweeps, vaults), toLamports(kept));
    }

    /** Whether it would move too little, or something of it is left out because of what it costs or leaves. */
    function leavesOutOf(part: CollectPart, simulated: Simulated, terms: Price): boolean {
      const { rent, leftInAmm } = simulated;
      if (part.sweeps.length > 0) {
        const costly = rent === undefined ? sweeps : findTooExpensive(part, rent);
        const text = `the fee payer's rent in the simulation, in lamports: ${rent ?? "unknown"}`;
        leaveOut(costly, costly.length > 0 ? new Error(text) : undefined);
        if (costly.length > 0) return true;
      }
      for (const [vault, left] of leftInAmm)
        if (vault === ammVault || part.sweeps.length > 0) findings.foundInAmm(vault, left);
      if (leftInAmm.get(ammVault)) {
        leaveOutAmm();
        return true;
      }
      const unpaid = findUnpaid(part, simulated, terms, rentMinimum);
      if (unpaid.length === 0) return false;
      leaveOut(unpaid);
      log.debug({ address, mints: unpaid.map(({ coin }) => coin.mint) }, "distributions pay too little");
      return true;
    }

    /** The version of messages may have changed since the last choice, so it is made anew for each simulation. */
    function choosePart(): CollectPart | undefined {
      while (!hasGivenUp) {
        const chosen = prospects.choosePart(account, sweeps, vaults);
        if (others.length === 0 || chosen?.sweeps.length) return chosen;
        sweeps = others.pop()!;
      }
      return undefined;
    }

    function giveUp(reason: CollectError | undefined): void {
      failure = reason;
      hasGivenUp = true;
    }

    return {
      candidate,
      address,

      /** Chooses what it does now; undefined if nothing is left, or less than a collect must move. */
      choosePart,

      /** Why nothing is left; undefined if the reason is that too little would move. */
      failure: () => failure,

      movedBy,

      /** Leaves out what made a simulation fail, or all if it must not be tried again. `steps`: the culprits, if known. */
      leaveOutFailed(part: CollectPart, { err, logs }: Simulated, steps: readonly Culprit[]): void {
        const error = new CollectError({
          ...{ kind: "simulation-failed", err: err!, programError: lastProgramError(logs) },
        });
        const culprits = steps.flatMap(({ sweep }) => sweep ?? []);
        const { length: hasSweeps } = part.sweeps;
        failed++;
        if (culprits.length === 0 && isReceiverBelowRent(err!)) giveUp(undefined);
        else if (hasSweeps && failed >= MAX_FAILED) {
          leaveOut([...sweeps, ...others.flat()], error);
          [sweeps, others] = [[], []];
        } else if (culprits.length > 0) blame(culprits, error, err!);
        else if (part.withAmm && (steps[0]?.kind === "amm" || !hasSweeps)) leaveOutAmm(error);
        else if (hasSweeps) leaveOutHalf(part.sweeps, error, err!);
        else giveUp(error);
      },

      /**
       * Whether a transaction that succeeds in the simulation is not yet the one to sign: the draft has changed, because
       * something of it costs too much, or pays or moves too little.
       */
      leaveOutCostly(part: CollectPart, simulated: Simulated, terms: Price): boolean {
        if (leavesOutOf(part, simulated, terms)) return true;
        if (movedBy(part, simulated) >= minCollectLamports) return false;
        giveUp(undefined);
        return true;
      },

      /** What another collect would move, after the part is done. */
      remaining(part: CollectPart): readonly WaitingFees[] {
        const unlocked = fees.sweeps.filter((sweep) => !mayDo(sweep));
        const all = chooseSweeps([...sweeps, ...others.flat(), ...unlocked], vaults, maxRentLamports);
        const waiting = all.flatMap(({ coin, stage, amount }) => {
          const done = part.sweeps.find((each) => each.coin.mint === coin.mint && each.stage === stage);
          const left = saturatingSubtract(amount, done?.amount ?? toLamports(0));
          return left > 0n ? [{ mint: coin.mint, amount: left }] : [];
        });
        return [...waiting, ...prospect.later];
      },

      logLeftOut(): void {
        if (!logged) return;
        const coins = leftOut.size > 0 ? ["coins"] : [];
        const what = [...(hasLoggedAmm ? ["the AMM's fees"] : []), ...coins].join(" and ");
        log.warn(
          { address, mints: [...leftOut], err: logged },
          `a collect leaves out ${what}, because they fail its simulation or cost too much: if every collect does, the launch platform has changed, so install a new version`,
        );
        logged = undefined;
      },
    };
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

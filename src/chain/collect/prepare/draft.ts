import type { Logger } from "../../../observability/log.ts";
import type { Balances, UncollectedFees } from "../../balances.ts";
import type { CoinFindings } from "../../coin-findings.ts";
import { CollectError } from "../../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import { BASE_FEE_LAMPORTS, priorityFee } from "../../priority-fee.ts";
import {
  failedInstruction,
  isReceiverBelowRent,
  isTooLarge,
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
  type ChosenSweep,
  type Distribution,
  type Sweep,
  type WaitingFees,
} from "../../choose-sweeps.ts";
import type { WalletWithCoins } from "../../wallets.ts";
import type { Claim } from "../claims.ts";
import type { CoinBackoff, Group } from "../coin-backoff.ts";
import type { Payers } from "../fee-budget.ts";
import type { CollectPart, Composer, Step } from "../message/composer.ts";
import type { MessageBudget } from "../message/message.ts";
import type { FailedSimulation, Simulated } from "./simulator.ts";
import type { MonotonicTime } from "../../../time/monotonic.ts";

/** A collect whose transaction is being prepared. */
export interface PendingCollect {
  readonly wallet: WalletWithCoins;
  readonly claim: Claim;
  /**
   * The claims of sharing configs, by the coin's mint. Without its claim, a coin's fees are not
   * distributed.
   */
  readonly distributions: ReadonlyMap<string, Claim>;
  readonly payers: Payers;
  /** The least that a waiting caller wants moved. A caller who joins can lower it. */
  readonly minimum: () => Lamports;
  /** The address block that requested the coins. */
  readonly block: string | undefined;
  /** Drafts add the mints of the coins that they leave out. */
  readonly leftOut: Set<string>;
  /** The groups that have been tried and get no new draft. */
  readonly tried: ReadonlySet<symbol>;
  /** Nothing is signed after this time. */
  readonly endsAt: MonotonicTime;
  /** Called when a transaction is signed, before any other collect can read it. */
  readonly onSigned: () => void;
}

/**
 * After this many failed simulations, all sweeps are left out. A request can name only 10 coins.
 */
const MAX_FAILED = 12;

export type ReadDrafts = ReturnType<typeof createReadDrafts>;
/** The plan of one transaction for one account. Each simulation can change the plan. */
export type Draft = Awaited<ReturnType<ReadDrafts>>[number];

/**
 * Returns a function that reads an account's fees and drafts a transaction for each group of
 * sweeps, in the order to try them. Skips groups that would move less than `minCollectLamports`.
 * Throws {@link CollectError} `coins-backing-off` if only the backoff of coins prevents a draft.
 *
 * A draft leaves out what makes a simulation fail or costs too much: a sweep, or the AMM's vault.
 * If the failing sweep is unknown, the draft tries half of the sweeps, then the other half.
 */
export function createReadDrafts(needs: {
  balances: Pick<Balances, "getUncollectedFees">;
  backoff: CoinBackoff;
  composer: Pick<Composer, "choosePart">;
  findings: Pick<CoinFindings, "found">;
  minCollectLamports: Lamports;
  /** The most rent that one collect may pay. */
  maxRentLamports: Lamports;
  log: Logger;
}) {
  const { balances, backoff, composer, findings, minCollectLamports, maxRentLamports, log } = needs;

  /**
   * Returns the sweep to leave out: the smallest, if the simulated rent exceeds the expected rent
   * and is too high. Which sweep costs more is unknown, so the whole rent must be acceptable for
   * the smallest one alone.
   */
  function findTooExpensive({ sweeps }: CollectPart, rent: Lamports): Sweep[] {
    if (rent <= rentOf(sweeps)) return [];
    const smallest = sweeps.reduce((a, b) => (b.amount < a.amount ? b : a));
    return rent <= maxRentLamports && isRentAcceptable(rent, smallest.amount) ? [] : [smallest];
  }

  /**
   * Returns the distributions that pay the account less than a collect must move, or less than the
   * transaction costs. Also records for lookups whether the launch platform distributes a coin's
   * fees.
   */
  function findUnpaid(
    { account, sweeps }: CollectPart,
    { after, leftInAmm }: Simulated,
    { unitLimit, price }: MessageBudget,
    rentMinimum: Lamports,
  ): Distribution[] {
    const fee = BASE_FEE_LAMPORTS + priorityFee(price, unitLimit);
    return distributionsOf(sweeps).filter(({ coin, shareholders, distributable, rent }) => {
      const { creatorVault, ammVault } = coin.sharingConfig;
      // The vault still holds amounts below the platform's minimum.
      const inVault = saturatingSubtract(after(creatorVault), rentMinimum);
      const left = toLamports(inVault + (leftInAmm.get(ammVault) ?? 0n));
      const distributed = saturatingSubtract(distributable, left);
      findings.found(
        coin.mint,
        distributed < minCollectLamports ? "BELOW_SHARING_MINIMUM" : undefined,
        left,
      );
      const gain = partOf(distributed, shareholders, account.address);
      return gain < minCollectLamports || gain < fee + rent;
    });
  }

  /**
   * `wanted`: the part to collect once its claims are held. `waiting`: all sweeps that are worth
   * their rent.
   */
  function createDraft(
    collect: PendingCollect,
    { id, isApart, sweeps: ofGroup }: Group,
    { vaults: before, missingRent, unwithdrawable }: UncollectedFees,
    wanted: CollectPart,
    waiting: readonly ChosenSweep[],
  ) {
    const { claim, distributions, leftOut, minimum } = collect;
    const { address, creatorVault, ammVault } = wanted.account;
    const { rentMinimum } = before;
    const amount = collectableWith(wanted.sweeps, before);
    const missing = saturatingSubtract(missingRent, amount);
    let vaults = before;
    let sweeps = ofGroup.filter(
      ({ stage, coin }) => stage !== "SHARED" || distributions.has(coin.mint),
    );
    /** The sweeps to try after `sweeps`, the last list first. */
    let others: Sweep[][] = [];
    let hasGivenUp = false;
    let failure: CollectError | undefined;
    let failed = 0;
    /** The last reason why something was left out; logged once. */
    let logged: Error | undefined;
    let hasLeftOutAmm = false;

    function leaveOut(some: readonly Sweep[], error?: Error): void {
      for (const { coin } of some) leftOut.add(coin.mint);
      logged = error ?? logged;
      sweeps = without(sweeps, some);
    }

    function leaveOutAmm(error?: CollectError): void {
      logged = error ?? logged;
      hasLeftOutAmm = true;
      failure = error;
      vaults = { ...vaults, ammVault: toLamports(0) };
      sweeps = withoutPools(sweeps);
      others = others.map(withoutPools);
    }

    /**
     * Keeps distributions that had no room for their pool, if others leave: the next simulation may
     * have room.
     */
    function leaveOutUnpaid(unpaid: readonly Distribution[]): void {
      const withPools = distributionsOf(waiting).filter(({ withPool }) => withPool);
      const small = unpaid.filter(
        ({ coin, withPool }) => withPool || !withPools.some((each) => each.coin.mint === coin.mint),
      );
      leaveOut(small);
      if (small.length === 0) sweeps = without(sweeps, unpaid);
    }

    function blame(some: readonly Sweep[], error: Error, err: TransactionError): void {
      const blocked = isOfShareholders(err) ? distributionsOf(some) : [];
      for (const { coin } of blocked) findings.found(coin.mint, "SHAREHOLDER_BLOCKED");
      leaveOut(some, error);
    }

    /**
     * Keeps half of the sweeps and queues the other half. Call when the sweep that fails is
     * unknown.
     */
    function leaveOutHalf(some: readonly Sweep[], error: Error, err: TransactionError): void {
      const mints = [...new Set(some.map(({ coin }) => coin.mint))];
      if (mints.length < 2) {
        blame(some, error, err);
        return;
      }
      const half = Math.ceil(mints.length / 2);
      const among = (wanted: readonly string[]) =>
        sweeps.filter(({ coin }) => wanted.includes(coin.mint));
      const [first, second] = [among(mints.slice(0, half)), among(mints.slice(half))];
      others.push(without(sweeps, [...first, ...second]), second);
      sweeps = first;
    }

    /** Returns the lamports that a simulated transaction moves for the account. */
    function movedBy(part: CollectPart, { after, leftInAmm }: Simulated): Lamports {
      // Count what vaults and coins lose, not what the address gains: the owner may withdraw at any
      // moment.
      const left = part.withVaults ? after(creatorVault) : rentMinimum;
      const kept = saturatingSubtract(left, rentMinimum) + (leftInAmm.get(ammVault) ?? 0n);
      const moved = part.withAmm ? vaults : { ...vaults, ammVault: toLamports(0) };
      return saturatingSubtract(collectableWith(part.sweeps, moved), toLamports(kept));
    }

    function giveUp(reason: CollectError | undefined): void {
      failure = reason;
      hasGivenUp = true;
    }

    return {
      ...{ id, isApart, address, collect, wanted, rentMinimum, unwithdrawable },

      /** The lamports that the transaction is to move for the account, before any simulation. */
      amount,

      /**
       * How many more lamports of fees the address needs to become rent-exempt, if any. A smaller
       * transfer fails.
       */
      missing: missing > 0n ? missing : undefined,

      /** Returns undefined if too little is left. */
      choosePart(): CollectPart | undefined {
        while (!hasGivenUp) {
          const chosen = composer.choosePart(wanted.account, sweeps, vaults);
          if (chosen?.sweeps.length) return chosen;
          // Without sweeps, a group kept apart leaves the vaults to the rest.
          if (others.length === 0) return isApart && !hasLeftOutAmm ? undefined : chosen;
          sweeps = others.pop()!;
        }
        return undefined;
      },

      /** Returns the error that prevents a collect; undefined if too little would move. */
      failure: () => failure,

      movedBy,

      /**
       * Returns the claims that a part needs: the account's claim, and one for each of the part's
       * distributions.
       */
      claimsOf: ({ sweeps }: CollectPart): Claim[] => [
        claim,
        ...distributionsOf(sweeps).map(({ coin }) => distributions.get(coin.mint)!),
      ],

      /**
       * Leaves out what made a simulation fail; after many failures, all sweeps. `steps`: what
       * failed, if known.
       */
      leaveOutFailed(
        part: CollectPart,
        { err, logs }: FailedSimulation,
        steps: readonly Step[],
      ): void {
        const programError = lastProgramError(logs);
        const error = new CollectError({ kind: "simulation-failed", err, programError });
        const culprits = steps.flatMap(({ sweep }) => sweep ?? []);
        const { length: hasSweeps } = part.sweeps;
        failed++;
        if (culprits.length === 0 && isReceiverBelowRent(err)) giveUp(undefined);
        else if (hasSweeps && failed >= MAX_FAILED) {
          leaveOut([...sweeps, ...others.flat()], error);
          [sweeps, others] = [[], []];
        } else if (culprits.length > 0) blame(culprits, error, err);
        else if (part.withAmm && (steps[0]?.kind === "amm" || !hasSweeps)) leaveOutAmm(error);
        else if (hasSweeps) leaveOutHalf(part.sweeps, error, err);
        else giveUp(error);
      },

      /**
       * Leaves out what costs too much or moves too little in a simulation. Returns whether to
       * simulate again.
       */
      leaveOutCostly(part: CollectPart, simulated: Simulated, terms: MessageBudget): boolean {
        const { rent, leftInAmm } = simulated;
        if (part.sweeps.length > 0) {
          const costly = findTooExpensive(part, rent);
          const text = `the fee payer's rent in the simulation, in lamports: ${rent}`;
          leaveOut(costly, costly.length > 0 ? new Error(text) : undefined);
          if (costly.length > 0) return true;
        }
        for (const [vault, left] of leftInAmm)
          if (vault === ammVault || part.sweeps.length > 0)
            findings.found(vault, left > 0n ? "BELOW_AMM_MINIMUM" : undefined, left);
        const unpaid = leftInAmm.get(ammVault)
          ? []
          : findUnpaid(part, simulated, terms, rentMinimum);
        if (leftInAmm.get(ammVault)) leaveOutAmm();
        else if (unpaid.length > 0) leaveOutUnpaid(unpaid);
        else {
          const moved = movedBy(part, simulated);
          if (moved >= minCollectLamports && moved >= minimum()) return false;
          giveUp(undefined);
        }
        return true;
      },

      /** Returns the fees that another collect would move after this part. */
      remaining: (part: CollectPart): readonly WaitingFees[] =>
        (hasLeftOutAmm ? withoutPools(waiting) : waiting).flatMap(
          ({ coin: { mint }, stage, amount }) => {
            const done = part.sweeps.find(
              (each) => each.coin.mint === mint && each.stage === stage,
            );
            const left = saturatingSubtract(amount, done?.amount ?? toLamports(0));
            return left > 0n && !leftOut.has(mint) ? [{ mint, amount: left }] : [];
          },
        ),

      logLeftOut(): void {
        if (!logged) return;
        log.warn(
          { address, mints: [...leftOut], err: logged },
          "a collect leaves out coins or the AMM's fees, because they fail its simulation or cost too much: if every collect does, the launch platform has changed, so install a new version",
        );
        logged = undefined;
      },
    };
  }

  return async (collect: PendingCollect) => {
    const { wallet, block, leftOut, tried } = collect;
    const { account } = wallet;
    const coins = wallet.coins.filter(({ mint }) => !leftOut.has(mint));
    const fees = await balances.getUncollectedFees({ account, coins });
    const waits = fees.sweeps.map((sweep) => backoff.leftOutMs(account.address, sweep, block));
    const ready = fees.sweeps.filter((_, i) => waits[i]! <= 0);
    const waiting = chooseSweeps(ready, fees.vaults, maxRentLamports);
    const drafts = backoff.inTurn(account.address, ready).flatMap((group) => {
      const { id, isApart, sweeps } = group;
      if (tried.has(id)) return [];
      // A group that only distributes leaves the account's vaults to another transaction.
      const isOnlyShared = isApart && distributionsOf(sweeps).length === sweeps.length;
      const nothing = { creatorVault: toLamports(0), ammVault: toLamports(0) };
      const vaults = isOnlyShared ? { ...fees.vaults, ...nothing } : fees.vaults;
      const wanted = composer.choosePart(account, sweeps, vaults);
      if (!wanted) return [];
      return [createDraft(collect, group, { ...fees, vaults }, wanted, waiting)];
    });
    const leftMs = Math.min(...waits.filter((ms) => ms > 0));
    if (
      drafts.length === 0 &&
      leftMs < Infinity &&
      composer.choosePart(account, fees.sweeps, fees.vaults)
    )
      throw new CollectError({ kind: "coins-backing-off", leftMs });
    return drafts;
  };
}

/**
 * Whether a shareholder may be why a distribution failed. The accounts that are read do not show
 * such causes.
 */
function isOfShareholders(err: TransactionError): boolean {
  if (isTooLarge(err)) return false;
  const isOfAccounts = isReceiverBelowRent(err) || err === "MaxLoadedAccountsDataSizeExceeded";
  return isOfAccounts || failedInstruction(err) !== undefined;
}

function without(sweeps: readonly Sweep[], some: readonly Sweep[]): Sweep[] {
  return sweeps.filter(
    ({ coin, stage }) => !some.some((each) => each.coin.mint === coin.mint && each.stage === stage),
  );
}

/**
 * Returns the runtime's last log line about a failed program. Ignores programs' own lines: they may
 * say anything.
 */
function lastProgramError(logs: readonly string[]): string | undefined {
  return logs.findLast((line) => /^Program \w+ failed: /.test(line));
}

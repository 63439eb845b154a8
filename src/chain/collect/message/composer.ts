import { PublicKey, SystemProgram } from "@solana/web3.js";
import type { AccountAddresses } from "../../addresses.ts";
import { toLamports, type Lamports } from "../../lamports.ts";
import { PLACES, STAGES } from "../../launchpad/fee-accounts.ts";
import {
  collectCreatorFee,
  distributeCreatorFees,
  fromTransactionInstruction,
  SWEEPS,
  sweepCurve,
  sweepPool,
  transferCreatorFeesToPump,
  type Instruction,
} from "../../launchpad/instructions.ts";
import {
  accountBelowRent,
  failedInstruction,
  isTooLarge,
  type TransactionError,
} from "../../rpc/transaction-error.ts";
import {
  chooseSweeps,
  collectableWith,
  distributionsOf,
  inAmm,
  inVaultsWith,
  rentOf,
  sweepsOf,
  type ChosenSweep,
  type Distribution,
  type Sweep,
  type Vaults,
} from "../../choose-sweeps.ts";
import {
  compileMessage,
  fitsMessage,
  MAX_UNIT_LIMIT,
  readMessage,
  type MessageBudget,
} from "./message.ts";

/**
 * What a transaction does for one account: distributions, sweeps, the AMM's transfer, then the
 * collect.
 */
export interface CollectPart {
  readonly account: AccountAddresses;
  readonly sweeps: readonly ChosenSweep[];
  readonly withAmm: boolean;
  /** False if there are only distributions, which pay the address directly. */
  readonly withVaults: boolean;
}

/** What differs between transactions with the same parts, besides the blockhash. */
export interface TransactionTerms extends MessageBudget {
  /**
   * The least that the fee payer must hold at the end of a transaction with sweeps, in lamports.
   */
  readonly guard: bigint;
}

/**
 * One instruction of a part. A sweep can have several; the AMM's transfer and the collect have one
 * each.
 */
export interface Step {
  readonly part: CollectPart;
  readonly kind: "sweep" | "amm" | "collect";
  readonly sweep: Sweep | undefined;
  readonly instruction: Instruction;
}

/**
 * The least compute units to request: for each instruction, and once for the spread between
 * transactions, because an instruction uses more units with some addresses. A simulation measures
 * too few if it sees an empty vault that fees reach later, or if the endpoint lies, and a
 * transaction that runs out of units costs its fee. On the sandbox a collect uses 5,000 to 14,000,
 * the AMM's transfer 30,000, a sweep of a curve 11,000 to 26,000, of a pool 13,000 to 23,000, a
 * distribution 14,000 to 30,000.
 */
const LEAST_UNITS = {
  collect: 10_000,
  amm: 50_000,
  CURVE: 28_000,
  POOL: 35_000,
  distribute: 25_000,
  payout: 2_500,
  spread: 15_000,
};
/**
 * How many more units are used if fees arrive after a simulation that saw none: by a pool's sweep,
 * and by each payout.
 */
const MORE_UNITS_OF_POOL = 25_000;
const MORE_UNITS_OF_PAYOUT = 2_000;
const UNIT_LIMIT_MARGIN = 1.2;

/** A placeholder: the node replaces the blockhash of a simulation. */
const NO_BLOCKHASH = PublicKey.default.toBase58();

export type Composer = ReturnType<typeof createComposer>;

/**
 * Chooses what fits into a collect's message, composes the message, and finds what made a
 * transaction fail.
 */
export function createComposer(needs: {
  /** In base58. */
  feePayer: string;
  minCollectLamports: Lamports;
  /** The most rent that one collect may pay. */
  maxRentLamports: Lamports;
}) {
  const { feePayer, minCollectLamports, maxRentLamports } = needs;
  const someGuard = guardInstruction(feePayer, 0n);

  /**
   * Returns the steps of a part in order. The AMM's transfer follows all sweeps: it moves what
   * pools pay, and a curve's sweep must first pay the rent of a missing creator vault, as
   * `collectableWith` expects.
   */
  function stepsOf(part: CollectPart): Step[] {
    const { account, sweeps, withAmm, withVaults } = part;
    const steps: Step[] = [];
    const add = (kind: Step["kind"], instruction: Instruction, sweep?: Sweep) =>
      steps.push({ part, kind, sweep, instruction });
    for (const sweep of distributionsOf(sweeps))
      for (const instruction of distribute(sweep)) add("sweep", instruction, sweep);
    for (const sweep of STAGES.flatMap((stage) => sweepsOf(stage, sweeps)))
      add("sweep", SWEEPS[sweep.stage](feePayer, account, sweep.coin), sweep);
    if (withAmm) add("amm", transferCreatorFeesToPump(account));
    if (withVaults) add("collect", collectCreatorFee(account));
    return steps;
  }

  /** Sweeps first, because a distribution fails while fees wait on the curve. */
  function distribute({ coin, shareholders, withCurve, withPool }: Distribution): Instruction[] {
    const { sharingConfig } = coin;
    return [
      ...(withPool
        ? [sweepPool(feePayer, sharingConfig, coin), transferCreatorFeesToPump(sharingConfig)]
        : []),
      ...(withCurve ? [sweepCurve(feePayer, sharingConfig, coin)] : []),
      distributeCreatorFees(
        coin,
        shareholders.map(({ address }) => address),
      ),
    ];
  }

  /** The last instruction, `guard`, limits what sweeps can take from the fee payer. */
  function instructionsOf(parts: readonly CollectPart[], guard: Instruction): Instruction[] {
    const hasSweeps = parts.some(({ sweeps }) => sweeps.length > 0);
    const steps = parts.flatMap(stepsOf).map(({ instruction }) => instruction);
    return [...steps, ...(hasSweeps ? [guard] : [])];
  }

  function compose(
    parts: readonly CollectPart[],
    terms: TransactionTerms,
    blockhash = NO_BLOCKHASH,
  ): Uint8Array {
    const instructions = instructionsOf(parts, guardInstruction(feePayer, terms.guard));
    return compileMessage(feePayer, instructions, terms, blockhash);
  }

  /**
   * Whether the parts fit into one transaction. Counts bytes, because compiling takes a hundred
   * times as long.
   */
  function fits(parts: readonly CollectPart[]): boolean {
    return (
      leastUnitsOf(parts) <= MAX_UNIT_LIMIT &&
      fitsMessage(feePayer, instructionsOf(parts, someGuard))
    );
  }

  /**
   * Chooses the largest sweeps that fit into a transaction and whose rent is not too high. Returns
   * undefined if a collect with them would move less than `minCollectLamports`.
   */
  function choosePart(
    account: AccountAddresses,
    sweeps: readonly Sweep[],
    vaults: Vaults,
  ): CollectPart | undefined {
    const chosen = chooseSweeps(sweeps, vaults, maxRentLamports, (some) => {
      const withAmm = sweepsOf("POOL", some).length > 0 || inAmm(some, vaults) > 0n;
      return (
        rentOf(some) <= maxRentLamports &&
        fits([{ account, sweeps: some, withAmm, withVaults: true }])
      );
    });
    const amount = collectableWith(chosen, vaults);
    if (vaults.ammVault > 0n) {
      // Without the AMM's transfer, the message may have room for a larger sweep.
      const withoutAmm = { ...vaults, ammVault: toLamports(0) };
      const other = choosePart(account, sweeps, withoutAmm);
      if (other && collectableWith(other.sweeps, withoutAmm) > amount) return other;
    }
    if (amount < minCollectLamports) return undefined;
    const withVaults = inVaultsWith(chosen, vaults) > 0n;
    return {
      account,
      sweeps: chosen,
      withAmm: withVaults && inAmm(chosen, vaults) > 0n,
      withVaults,
    };
  }

  return {
    compose,

    fits,

    choosePart,

    /**
     * Returns what made a transaction fail with `err`: one step, or all steps that can have left an
     * account below its rent-exempt minimum. Empty if unknown: if the transaction is too large, any
     * step may be the reason.
     */
    findCulprits(
      parts: readonly CollectPart[],
      terms: TransactionTerms,
      err: TransactionError,
    ): Step[] {
      const steps = parts.flatMap(stepsOf);
      const failed = failedInstruction(err);
      if (failed !== undefined) {
        const step = isTooLarge(err) ? undefined : steps[failed];
        return step ? [step] : [];
      }
      const index = accountBelowRent(err);
      const keys = index === undefined ? [] : readMessage(compose(parts, terms)).staticAccountKeys;
      const poor = keys[index ?? 0]?.toBase58() ?? "";
      const paying = steps.filter(
        ({ part, sweep }) => sweep && othersPaidBy(sweep, part).includes(poor),
      );
      if (paying.length > 0) return paying;
      return steps.filter(({ part, kind, sweep }) =>
        sweep
          ? writtenBy(sweep).includes(poor)
          : kind === "collect" && accountsOf(part).includes(poor),
      );
    },
  };
}

/**
 * Returns the compute-unit limit of a transaction whose simulation used `measured` units.
 * `usedBefore`: the most that a transaction with as many of the same instructions has used.
 */
export function unitLimitOf(
  parts: readonly CollectPart[],
  measured: number,
  usedBefore: number,
): number {
  const sweeps = parts.flatMap((part) => part.sweeps);
  const pools = sweeps.filter((sweep) =>
    sweep.stage === "SHARED" ? sweep.withPool : sweep.stage === "POOL",
  );
  const payouts = distributionsOf(sweeps).flatMap(({ shareholders }) => shareholders);
  const more = MORE_UNITS_OF_POOL * pools.length + MORE_UNITS_OF_PAYOUT * payouts.length;
  const units = Math.max(
    Math.ceil(measured * UNIT_LIMIT_MARGIN),
    measured + more,
    leastUnitsOf(parts),
    usedBefore,
  );
  return Math.min(units, MAX_UNIT_LIMIT);
}

function leastUnitsOf(parts: readonly CollectPart[]): number {
  return parts.reduce(
    (sum, { withAmm, sweeps }) =>
      sum +
      LEAST_UNITS.collect +
      (withAmm ? LEAST_UNITS.amm : 0) +
      sweeps.reduce((units, sweep) => units + leastUnitsOfSweep(sweep), 0),
    LEAST_UNITS.spread,
  );
}

function leastUnitsOfSweep(sweep: Sweep): number {
  if (sweep.stage !== "SHARED") return LEAST_UNITS[sweep.stage];
  return (
    (sweep.withCurve ? LEAST_UNITS.CURVE : 0) +
    (sweep.withPool ? LEAST_UNITS.POOL + LEAST_UNITS.amm : 0) +
    LEAST_UNITS.distribute +
    LEAST_UNITS.payout * sweep.shareholders.length
  );
}

function accountsOf({ account }: CollectPart): string[] {
  return [account.address, account.creatorVault, account.ammVaultAuthority, account.ammVault];
}

/**
 * Returns the accounts that a distribution pays besides the part's own; none for the sweep of a
 * curve or pool.
 */
function othersPaidBy(sweep: Sweep, { account }: CollectPart): string[] {
  if (sweep.stage !== "SHARED") return [];
  return sweep.shareholders
    .map(({ address }) => address)
    .filter((address) => address !== account.address);
}

/**
 * Returns the written accounts that decide a part's price: the address, vaults, curves and pools.
 * Leaves out other shareholders: one could raise the price by choosing an address that many
 * transactions write to.
 */
export function writableOf({ account, withAmm, withVaults, sweeps }: CollectPart): string[] {
  return [
    account.address,
    ...(withVaults ? [account.creatorVault] : []),
    ...(withAmm ? [account.ammVault] : []),
    ...sweeps.flatMap(writtenBy),
  ];
}

/**
 * Returns the curve or pool that a sweep writes to. For a distribution, adds the sharing config's
 * vaults.
 */
function writtenBy(sweep: Sweep): string[] {
  const { coin, stage } = sweep;
  if (stage !== "SHARED") return [coin[PLACES[stage].account]];
  const { curve, pool, sharingConfig } = coin;
  return [
    ...[curve, sharingConfig.creatorVault],
    ...(sweep.withPool ? [pool, sharingConfig.ammVault] : []),
  ];
}

/**
 * Returns a transfer from `feePayer` to itself. It moves nothing, but fails if `feePayer` lacks
 * `lamports`.
 */
export function guardInstruction(feePayer: string, lamports: bigint): Instruction {
  const key = new PublicKey(feePayer);
  return fromTransactionInstruction(
    SystemProgram.transfer({ fromPubkey: key, toPubkey: key, lamports }),
  );
}

import { PublicKey } from "@solana/web3.js";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import type { Lamports } from "../primitives/lamports.ts";
import { STAGES } from "../launchpad/fee-accounts.ts";
import {
  collectCreatorFee,
  distributeCreatorFees,
  guardInstruction,
  SWEEPS,
  transferCreatorFeesToPump,
  type Instruction,
} from "../launchpad/instructions.ts";
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
} from "../launchpad/choose-sweeps.ts";
import { failedInstruction } from "../errors/transaction-error.ts";
import type { TransactionError } from "../rpc/rpc-results.ts";
import { compileMessage, fitsMessage, type MessageBudget } from "./message.ts";
import type { CollectPart, PlannedPart } from "./part.ts";
import { canRun } from "./instruction-costs.ts";

/** What differs between transactions with the same parts, besides the blockhash. */
export interface TransactionTerms extends MessageBudget {
  /**
   * The least that the fee payer must hold at the end of a transaction with sweeps, in lamports.
   */
  readonly guard: bigint;
}

/** An instruction of a transaction, and what it is for. */
export interface Step {
  readonly instruction: Instruction;
  readonly part: CollectPart;
  readonly sweep?: ChosenSweep;
  /** Whether it is the AMM's transfer. */
  readonly isAmm?: boolean;
}

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
   * Returns a part's instructions in order. The AMM's transfer follows all sweeps: it moves
   * what pools pay, and a curve's sweep must first pay the rent of a missing creator vault, as
   * `collectableWith` expects.
   */
  function stepsOf(part: CollectPart): Step[] {
    const { account, sweeps, withAmm, withVaults } = part;
    return [
      ...distributionsOf(sweeps).flatMap((sweep) =>
        distribute(sweep).map((instruction) => ({ part, sweep, instruction })),
      ),
      ...STAGES.flatMap((stage) => sweepsOf(stage, sweeps)).map((sweep) => ({
        part,
        sweep,
        instruction: SWEEPS[sweep.stage](feePayer, account, sweep.coin),
      })),
      ...(withAmm ? [{ part, isAmm: true, instruction: transferCreatorFeesToPump(account) }] : []),
      ...(withVaults ? [{ part, instruction: collectCreatorFee(account) }] : []),
    ];
  }

  /** Sweeps first, because a distribution fails while fees wait on the curve. */
  function distribute({ coin, shareholders, places }: Distribution): Instruction[] {
    const { sharingConfig } = coin;
    return [
      ...places.flatMap(({ stage }) => [
        SWEEPS[stage](feePayer, sharingConfig, coin),
        ...(stage === "POOL" ? [transferCreatorFeesToPump(sharingConfig)] : []),
      ]),
      distributeCreatorFees(
        coin,
        shareholders.map(({ address }) => address),
      ),
    ];
  }

  /** The last instruction, `guard`, limits what sweeps can take from the fee payer. */
  function instructionsOf(parts: readonly CollectPart[], guard: Instruction): Instruction[] {
    const hasSweeps = parts.some(({ sweeps }) => sweeps.length > 0);
    const instructions = parts.flatMap(stepsOf).map(({ instruction }) => instruction);
    return hasSweeps ? [...instructions, guard] : instructions;
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
    return canRun(parts) && fitsMessage(feePayer, instructionsOf(parts, someGuard));
  }

  /**
   * Chooses the largest sweeps that fit into a transaction and whose rent is not too high. Returns
   * undefined if a collect with them would move less than `minCollectLamports`.
   */
  function choosePart(
    account: AccountAddresses,
    sweeps: readonly Sweep[],
    vaults: Vaults,
  ): PlannedPart | undefined {
    const chosenSweeps = chooseSweeps(sweeps, vaults, maxRentLamports, (some) => {
      const withAmm = sweepsOf("POOL", some).length > 0 || inAmm(some, vaults) > 0n;
      return (
        rentOf(some) <= maxRentLamports &&
        fits([{ account, vaults, sweeps: some, withAmm, withVaults: true }])
      );
    });
    const amount = collectableWith(chosenSweeps, vaults);
    if (amount < minCollectLamports) return undefined;
    const withVaults = inVaultsWith(chosenSweeps, vaults) > 0n;
    return {
      account,
      vaults,
      sweeps: chosenSweeps,
      withAmm: withVaults && inAmm(chosenSweeps, vaults) > 0n,
      withVaults,
      amount,
    };
  }

  return {
    compose,

    fits,

    choosePart,

    /**
     * Returns the written accounts that decide the price of parts. Leaves out other shareholders:
     * one could raise the price by choosing an address that many transactions write to.
     */
    writableOf: (parts: readonly CollectPart[]): string[] =>
      parts.flatMap(stepsOf).flatMap(({ instruction, part, sweep }) => {
        const shareholders = sweep?.stage === "SHARED" ? sweep.shareholders : [];
        const others = new Set([feePayer, ...shareholders.map(({ address }) => address)]);
        others.delete(part.account.address);
        return instruction.accounts.flatMap(({ address, role }) =>
          role & 1 && !others.has(address) ? address : [],
        );
      }),

    /**
     * Returns the step that failed. Undefined if unknown: if the transaction is too large, any step
     * may be the reason.
     */
    blame: (parts: readonly CollectPart[], err: TransactionError): Step | undefined =>
      parts.flatMap(stepsOf)[failedInstruction(err) ?? -1],
  };
}

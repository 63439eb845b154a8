import {
  ComputeBudgetProgram,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
  type Message,
  type TransactionInstruction,
} from "@solana/web3.js";
import type { AccountAddresses } from "../../addresses.ts";
import { PLACES, SWEPT_VAULTS } from "../../launchpad/fee-accounts.ts";
import type { Launchpad } from "../../launchpad/instructions.ts";
import type { TransactionError } from "../../rpc/transaction-error.ts";
import { accountBelowRent, failedInstruction } from "../../rpc/transaction-error.ts";
import {
  distributionsOf,
  sweepsInto,
  type ChosenSweep,
  type Distribution,
  type Sweep,
} from "../../sweeps.ts";

/** What a transaction does for one account: distributions, sweeps, the AMM's part, then the collect. */
export interface CollectPart {
  readonly account: AccountAddresses;
  readonly sweeps: readonly ChosenSweep[];
  readonly withAmm: boolean;
  /** False if there are only distributions, which pay the address directly. */
  readonly withVaults: boolean;
}

/** What varies between the transactions of the same parts, besides the blockhash. */
export interface TransactionTerms {
  readonly unitLimit: number;
  /** In micro-lamports per compute unit. */
  readonly price: bigint;
  /** The least that the fee payer must hold at the end of a transaction with sweeps, in lamports. */
  readonly guard: bigint;
}

type Step = { readonly kind: "sweep"; readonly sweep: Sweep } | { readonly kind: "amm" | "collect" };

/** What made a transaction fail: a part, and in it a sweep, the AMM's part, or the collect itself. */
export interface Culprit {
  readonly part: CollectPart;
  readonly step: Step;
}

interface PlannedStep extends Culprit {
  readonly instruction: TransactionInstruction;
}

/** The size of a packet, which limits a transaction with its signatures. */
const MAX_TRANSACTION_BYTES = 1_232;
/** A placeholder: the node replaces the blockhash of a simulation. */
const NO_BLOCKHASH = PublicKey.default.toBase58();
/** Any terms with a price above 0 give a transaction the same size. */
const SOME_TERMS: TransactionTerms = { unitLimit: 1, price: 1n, guard: 0n };

export type Composer = ReturnType<typeof createComposer>;

/** Composes the messages of collects, whose fees `feePayer` pays, and finds out what made them fail. */
export function createComposer({ launchpad, feePayer }: { launchpad: Launchpad; feePayer: PublicKey }) {
  const feePayerAddress = feePayer.toBase58();

  /**
   * The steps of a part in order. Sweeps to the creator vault come first, so that they pay for it if it is
   * missing, as `collectableWith` expects; those to the AMM's vault come before the AMM's part, which moves what they
   * swept.
   */
  function stepsOf(part: CollectPart): PlannedStep[] {
    const { account, sweeps, withAmm, withVaults } = part;
    const steps: PlannedStep[] = [];
    const add = (step: Step, instruction: TransactionInstruction) => steps.push({ part, step, instruction });
    for (const sweep of distributionsOf(sweeps))
      for (const instruction of distribute(sweep)) add({ kind: "sweep", sweep }, instruction);
    for (const sweep of SWEPT_VAULTS.flatMap((vault) => sweepsInto(vault, sweeps))) {
      const instruction = launchpad[PLACES[sweep.stage].sweep](feePayerAddress, account, sweep.coin);
      add({ kind: "sweep", sweep }, instruction);
    }
    if (withAmm) add({ kind: "amm" }, launchpad.transferCreatorFeesToPump(account));
    if (withVaults) add({ kind: "collect" }, launchpad.collectCreatorFee(account));
    return steps;
  }

  /** A distribution fails while fees wait on the curve. */
  function distribute({ coin, shareholders, withCurve, withPool }: Distribution): TransactionInstruction[] {
    const { sharingConfig } = coin;
    return [
      ...(withPool
        ? [
            launchpad.sweepPool(feePayerAddress, sharingConfig, coin),
            launchpad.transferCreatorFeesToPump(sharingConfig),
          ]
        : []),
      ...(withCurve ? [launchpad.sweepCurve(feePayerAddress, sharingConfig, coin)] : []),
      launchpad.distributeCreatorFees(
        coin,
        shareholders.map(({ address }) => address),
      ),
    ];
  }

  /** The instructions before the steps. */
  function priceInstructions({ unitLimit, price }: TransactionTerms): TransactionInstruction[] {
    return [
      ComputeBudgetProgram.setComputeUnitLimit({ units: unitLimit }),
      ...(price > 0n ? [ComputeBudgetProgram.setComputeUnitPrice({ microLamports: price })] : []),
    ];
  }

  /** Composes an unsigned message. One with sweeps ends with a guard against paying for more than they cost. */
  function compose(
    parts: readonly CollectPart[],
    terms: TransactionTerms,
    blockhash = NO_BLOCKHASH,
  ): Message {
    const hasSweeps = parts.some(({ sweeps }) => sweeps.length > 0);
    return new TransactionMessage({
      payerKey: feePayer,
      recentBlockhash: blockhash,
      instructions: [
        ...priceInstructions(terms),
        ...parts.flatMap(stepsOf).map(({ instruction }) => instruction),
        ...(hasSweeps ? [guardInstruction(feePayer, terms.guard)] : []),
      ],
    }).compileToLegacyMessage();
  }

  return {
    compose,

    /** Whether the parts fit into one transaction. */
    fits: (parts: readonly CollectPart[]): boolean =>
      new VersionedTransaction(compose(parts, SOME_TERMS)).serialize().length <= MAX_TRANSACTION_BYTES,

    /** For each instruction of a message, the mint of the coin that it sweeps, or null. */
    sweptMints: (parts: readonly CollectPart[], terms: TransactionTerms): (string | null)[] => [
      ...priceInstructions(terms).map(() => null),
      ...parts.flatMap(stepsOf).map(({ step }) => (step.kind === "sweep" ? step.sweep.coin.mint : null)),
    ],

    /** What made a transaction fail with `err`; undefined if it was none of the steps. */
    findCulprit(
      parts: readonly CollectPart[],
      terms: TransactionTerms,
      err: TransactionError,
    ): Culprit | undefined {
      const steps = parts.flatMap(stepsOf);
      const failed = failedInstruction(err);
      if (failed !== undefined) return steps[failed - priceInstructions(terms).length];
      const poor = accountBelowRent(err);
      if (poor === undefined) return undefined;
      const address = compose(parts, terms).accountKeys[poor]?.toBase58();
      return steps.find(({ part, step }) =>
        step.kind === "sweep"
          ? address !== part.account.address && writtenBy(step.sweep).includes(address ?? "")
          : step.kind === "collect" && accountsOf(part).includes(address ?? ""),
      );
    },
  };
}

function accountsOf({ account }: CollectPart): string[] {
  return [account.address, account.creatorVault, account.ammVaultAuthority, account.ammVault];
}

/** The accounts that a part writes, without the fee payer. */
export function writableOf({ account, withAmm, withVaults, sweeps }: CollectPart): string[] {
  return [
    account.address,
    ...(withVaults ? [account.creatorVault] : []),
    ...(withAmm ? [account.ammVault] : []),
    ...sweeps.flatMap(writtenBy),
  ];
}

function writtenBy(sweep: Sweep): string[] {
  const { coin, stage } = sweep;
  if (stage !== "SHARED") return [coin[PLACES[stage].account]];
  const { curve, pool, sharingConfig } = coin;
  return [
    ...[curve, sharingConfig.creatorVault],
    ...(sweep.withPool ? [pool, sharingConfig.ammVault] : []),
    ...sweep.shareholders.map(({ address }) => address),
  ];
}

/** Fails the transaction if `feePayer` holds less than `lamports` when it runs, and moves nothing otherwise. */
export function guardInstruction(feePayer: PublicKey, lamports: bigint): TransactionInstruction {
  return SystemProgram.transfer({ fromPubkey: feePayer, toPubkey: feePayer, lamports });
}

import {
  ComputeBudgetProgram,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  type Message,
} from "@solana/web3.js";
import type { AccountAddresses } from "../../addresses.ts";
import { PLACES, SWEPT_VAULTS } from "../../launchpad/fee-accounts.ts";
import {
  fromTransactionInstruction,
  toTransactionInstruction,
  type Instruction,
  type Launchpad,
} from "../../launchpad/instructions.ts";
import {
  accountBelowRent,
  failedInstruction,
  isOutOfUnits,
  type TransactionError,
} from "../../rpc/transaction-error.ts";
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
  readonly instruction: Instruction;
}

/** The size of a packet, which limits a transaction with its signatures. */
const MAX_TRANSACTION_BYTES = 1_232;
/** A signature and the count of signatures, the header, and the blockhash. */
const FIXED_BYTES = 1 + 64 + 3 + 32;
const KEY_BYTES = 32;
/** A placeholder: the node replaces the blockhash of a simulation. */
const NO_BLOCKHASH = PublicKey.default.toBase58();
/** Any terms with a price above 0 give a transaction the same size. */
const SOME_TERMS: TransactionTerms = { unitLimit: 1, price: 1n, guard: 0n };

export type Composer = ReturnType<typeof createComposer>;

/** Composes the messages of collects, whose fees `feePayer` pays, and finds out what made them fail. */
export function createComposer({ launchpad, feePayer }: { launchpad: Launchpad; feePayer: PublicKey }) {
  const feePayerAddress = feePayer.toBase58();
  const [somePrice, someGuard] = [
    priceInstructions(SOME_TERMS),
    guardInstruction(feePayer, SOME_TERMS.guard),
  ];

  /**
   * The steps of a part in order. Sweeps to the creator vault come first, so that they pay for it if it is
   * missing, as `collectableWith` expects; those to the AMM's vault come before the AMM's part, which moves what they
   * swept.
   */
  function stepsOf(part: CollectPart): PlannedStep[] {
    const { account, sweeps, withAmm, withVaults } = part;
    const steps: PlannedStep[] = [];
    const add = (step: Step, instruction: Instruction) => steps.push({ part, step, instruction });
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
  function distribute({ coin, shareholders, withCurve, withPool }: Distribution): Instruction[] {
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
  function priceInstructions({ unitLimit, price }: TransactionTerms): Instruction[] {
    return [
      ComputeBudgetProgram.setComputeUnitLimit({ units: unitLimit }),
      ...(price > 0n ? [ComputeBudgetProgram.setComputeUnitPrice({ microLamports: price })] : []),
    ].map(fromTransactionInstruction);
  }

  /** Transactions with sweeps end with a guard against paying for more than they cost. */
  function instructionsOf(
    parts: readonly CollectPart[],
    prices: readonly Instruction[],
    guard: Instruction,
  ): Instruction[] {
    const hasSweeps = parts.some(({ sweeps }) => sweeps.length > 0);
    const steps = parts.flatMap(stepsOf).map(({ instruction }) => instruction);
    return [...prices, ...steps, ...(hasSweeps ? [guard] : [])];
  }

  /** Composes an unsigned message. */
  function compose(
    parts: readonly CollectPart[],
    terms: TransactionTerms,
    blockhash = NO_BLOCKHASH,
  ): Message {
    const guard = guardInstruction(feePayer, terms.guard);
    return new TransactionMessage({
      payerKey: feePayer,
      recentBlockhash: blockhash,
      instructions: instructionsOf(parts, priceInstructions(terms), guard).map(toTransactionInstruction),
    }).compileToLegacyMessage();
  }

  return {
    compose,

    /** Whether the parts fit into one transaction. */
    fits: (parts: readonly CollectPart[]): boolean =>
      sizeOf(instructionsOf(parts, somePrice, someGuard), feePayerAddress) <= MAX_TRANSACTION_BYTES,

    /** For each instruction of a message, the mint of the coin that it sweeps, or null. */
    sweptMints: (parts: readonly CollectPart[], terms: TransactionTerms): (string | null)[] => [
      ...priceInstructions(terms).map(() => null),
      ...parts.flatMap(stepsOf).map(({ step }) => (step.kind === "sweep" ? step.sweep.coin.mint : null)),
    ],

    /**
     * What made a transaction fail with `err`: one step, or all that can have left an account below its rent-exempt
     * minimum. Empty if none can be named, as when the compute units were used up: any may have used too many.
     */
    findCulprits(parts: readonly CollectPart[], terms: TransactionTerms, err: TransactionError): Culprit[] {
      const steps = parts.flatMap(stepsOf);
      const failed = failedInstruction(err);
      if (failed !== undefined) {
        const step = isOutOfUnits(err) ? undefined : steps[failed - priceInstructions(terms).length];
        return step ? [step] : [];
      }
      const index = accountBelowRent(err);
      const poor = index === undefined ? "" : (compose(parts, terms).accountKeys[index]?.toBase58() ?? "");
      const paying = steps.filter(
        ({ part, step }) => step.kind === "sweep" && othersPaidBy(step.sweep, part).includes(poor),
      );
      if (paying.length > 0) return paying;
      return steps.filter(({ part, step }) =>
        step.kind === "sweep"
          ? writtenBy(step.sweep).includes(poor)
          : step.kind === "collect" && accountsOf(part).includes(poor),
      );
    },
  };
}

function accountsOf({ account }: CollectPart): string[] {
  return [account.address, account.creatorVault, account.ammVaultAuthority, account.ammVault];
}

/** The other accounts that a distribution pays. */
function othersPaidBy(sweep: Sweep, { account }: CollectPart): string[] {
  if (sweep.stage !== "SHARED") return [];
  return sweep.shareholders.map(({ address }) => address).filter((address) => address !== account.address);
}

/**
 * The accounts by which a part's price is chosen: those that it writes, without the fee payer, and without other
 * shareholders, who could raise the price with accounts that many write to.
 */
export function writableOf({ account, withAmm, withVaults, sweeps }: CollectPart): string[] {
  return [
    account.address,
    ...(withVaults ? [account.creatorVault] : []),
    ...(withAmm ? [account.ammVault] : []),
    ...sweeps.flatMap(writtenBy),
  ];
}

/** The accounts that a sweep writes, without those that it pays. */
function writtenBy(sweep: Sweep): string[] {
  const { coin, stage } = sweep;
  if (stage !== "SHARED") return [coin[PLACES[stage].account]];
  const { curve, pool, sharingConfig } = coin;
  return [...[curve, sharingConfig.creatorVault], ...(sweep.withPool ? [pool, sharingConfig.ammVault] : [])];
}

/** Fails the transaction if `feePayer` holds less than `lamports` when it runs, and moves nothing otherwise. */
export function guardInstruction(feePayer: PublicKey, lamports: bigint): Instruction {
  return fromTransactionInstruction(
    SystemProgram.transfer({ fromPubkey: feePayer, toPubkey: feePayer, lamports }),
  );
}

/**
 * The bytes of a legacy transaction that only `feePayer` signs. Counted instead of serialized, which takes a hundred times
 * as long. Source: https://solana.com/docs/core/transactions/transaction-structure
 */
function sizeOf(instructions: readonly Instruction[], feePayer: string): number {
  const keys = new Set([feePayer]);
  let bytes = FIXED_BYTES + lengthBytes(instructions.length);
  for (const { program, accounts, data } of instructions) {
    keys.add(program);
    for (const { address } of accounts) keys.add(address);
    bytes += 1 + lengthBytes(accounts.length) + accounts.length + lengthBytes(data.length) + data.length;
  }
  return bytes + lengthBytes(keys.size) + KEY_BYTES * keys.size;
}

/** The bytes of a compact-u16. */
function lengthBytes(length: number): number {
  return length < 0x80 ? 1 : 2;
}

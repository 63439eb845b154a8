import { ComputeBudgetProgram, PublicKey, type Message } from "@solana/web3.js";
import { toLamports, type Lamports } from "../../lamports.ts";
import type { CoinAddressesOf } from "../../launchpad/coin-addresses.ts";
import { PLACES, STAGES } from "../../launchpad/fee-accounts.ts";
import type { Instruction, Launchpad } from "../../launchpad/instructions.ts";
import { DerivedCreator } from "../../launchpad/vaults.ts";
import { BASE_FEE_LAMPORTS, priorityFee } from "../../priority-fee.ts";
import type { Sweep } from "../../sweeps.ts";
import { guardInstruction } from "./composer.ts";

/** What a message may do with the fee payer's account, besides paying the fee. */
export interface AllowedSweeps {
  /** The sweeps, each by the address of the account that collects, the mint and the place of the fees. */
  readonly sweeps: readonly {
    readonly address: string;
    readonly mint: string;
    readonly stage: Sweep["stage"];
  }[];
  /** The guard with which a message with sweeps must end, in lamports. */
  readonly guard: bigint;
}

// The first byte of the compute budget program's instructions.
const SET_COMPUTE_UNIT_LIMIT = 2;
const SET_COMPUTE_UNIT_PRICE = 3;

type CompiledInstruction = Message["compiledInstructions"][number];

/**
 * Returns a function that returns the fee of a message that is safe to sign, and throws for any other. A message may
 * call the launch platform's two programs and the compute budget program. The fee payer may be an account only of the
 * given sweeps, whose every account is derived here, and of the guard.
 */
export function createSigningRules(needs: {
  feePayer: PublicKey;
  launchpadProgramId: string;
  launchpadAmmProgramId: string;
  maxPriorityFee: Lamports;
  launchpad: Launchpad;
  coinAddressesOf: CoinAddressesOf;
}) {
  const { feePayer, launchpadProgramId, launchpadAmmProgramId, maxPriorityFee, launchpad, coinAddressesOf } =
    needs;
  const computeBudget = ComputeBudgetProgram.programId.toBase58();
  const allowedPrograms = new Set([launchpadProgramId, launchpadAmmProgramId, computeBudget]);
  const programs = {
    launchpad: new PublicKey(launchpadProgramId),
    amm: new PublicKey(launchpadAmmProgramId),
  };

  /** A distribution has no payer, and the sweeps before it move fees to the coin's sharing config. */
  function sweepInstructions({ address, mint, stage }: AllowedSweeps["sweeps"][number]) {
    const coin = coinAddressesOf(mint);
    const creator = stage === "SHARED" ? coin.sharingConfig : new DerivedCreator(address, programs);
    const stages = stage === "SHARED" ? STAGES : [stage];
    return stages.map((each) => launchpad[PLACES[each].sweep](feePayer.toBase58(), creator, coin));
  }

  return (message: Message, { sweeps, guard }: AllowedSweeps): Lamports => {
    const keys = message.accountKeys.map((key) => key.toBase58());
    if (keys[0] !== feePayer.toBase58() || message.header.numRequiredSignatures !== 1) {
      throw new Error("refused to sign: the fee payer must be the only signer");
    }
    const toText = ({ programIdIndex, accountKeyIndexes, data }: CompiledInstruction) =>
      [
        keys[programIdIndex],
        ...[...accountKeyIndexes].map((i) => keys[i]),
        Buffer.from(data).toString("hex"),
      ].join();
    const instructions = [...message.compiledInstructions];
    if (sweeps.length > 0) {
      const last = instructions.pop();
      if (!last || toText(last) !== textOf(guardInstruction(feePayer, guard)))
        throw new Error(`refused to sign: a message with sweeps must end with a guard of ${guard} lamports`);
    }
    const allowed = new Set(sweeps.flatMap(sweepInstructions).map(textOf));
    let unitLimit: number | undefined;
    let price = 0n;
    for (const instruction of instructions) {
      const { programIdIndex, accountKeyIndexes, data } = instruction;
      const programId = keys[programIdIndex] ?? "unknown";
      if (!allowedPrograms.has(programId)) throw new Error(`refused to sign: the message calls ${programId}`);
      if (accountKeyIndexes.includes(0) && !allowed.delete(toText(instruction))) {
        throw new Error(`refused to sign: the fee payer is an account of an instruction of ${programId}`);
      }
      if (programId !== computeBudget) continue;
      if (data[0] === SET_COMPUTE_UNIT_LIMIT) unitLimit = Buffer.from(data).readUInt32LE(1);
      else if (data[0] === SET_COMPUTE_UNIT_PRICE) price = Buffer.from(data).readBigUInt64LE(1);
      else throw new Error("refused to sign: an unknown instruction of the compute budget program");
    }
    if (unitLimit === undefined) throw new Error("refused to sign: no compute-unit limit is set");
    const priority = priorityFee(price, unitLimit);
    if (priority > maxPriorityFee) {
      throw new Error(
        `refused to sign: a priority fee of ${priority} lamports is above the cap of ${maxPriorityFee}`,
      );
    }
    return toLamports(BASE_FEE_LAMPORTS + priority);
  };
}

/** An instruction's program, accounts and data. */
function textOf({ program, accounts, data }: Instruction): string {
  return [program, ...accounts.map(({ address }) => address), data.toString("hex")].join();
}

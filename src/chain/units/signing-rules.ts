import { VersionedMessage, type MessageV1 } from "@solana/web3.js";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import { coinAddressesOf } from "../launchpad/coin-addresses.ts";
import { STAGES } from "../launchpad/fee-accounts.ts";
import { guardInstruction, SWEEPS, type Instruction } from "../launchpad/instructions.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "../launchpad/program-ids.ts";
import { DerivedCreator } from "../launchpad/vaults.ts";
import { BASE_FEE_LAMPORTS } from "./priority-fee.ts";
import type { Sweep } from "../launchpad/choose-sweeps.ts";
import { LOADED_DATA_LIMIT } from "./message.ts";

/** What a message may do with the fee payer's account, besides paying the fee. */
export interface AllowedSweeps {
  /**
   * Each sweep: the address of the account that collects, the coin's mint, and where the fees wait.
   */
  readonly sweeps: readonly {
    readonly address: string;
    readonly mint: string;
    readonly stage: Sweep["stage"];
  }[];
  /** The lamports of the {@link guardInstruction} that must end a message with sweeps. */
  readonly guard: bigint;
}

const ALLOWED_PROGRAMS: readonly string[] = [LAUNCHPAD_PROGRAM_ID, LAUNCHPAD_AMM_PROGRAM_ID];

type CompiledInstruction = MessageV1["compiledInstructions"][number];

/**
 * Returns a function that throws unless a message is safe to sign, and returns the message's fee.
 * The message must be of version 1. It may call the launch platform's two programs. Only the guard
 * instruction and the allowed sweeps may name the fee payer. All accounts of a sweep are derived
 * here.
 */
export function createSigningRules(needs: {
  /** In base58. */
  feePayer: string;
  maxPriorityFeeLamports: Lamports;
}) {
  const { feePayer, maxPriorityFeeLamports } = needs;

  /**
   * Returns a sweep's instructions that name the fee payer: of a distribution, only its curve and
   * pool sweeps.
   */
  function sweepInstructions({ address, mint, stage }: AllowedSweeps["sweeps"][number]) {
    const coin = coinAddressesOf(mint);
    const creator = stage === "SHARED" ? coin.sharingConfig : new DerivedCreator(address);
    const stages = stage === "SHARED" ? STAGES : [stage];
    return stages.map((each) => SWEEPS[each](feePayer, creator, coin));
  }

  return (bytes: Uint8Array, { sweeps, guard }: AllowedSweeps): Lamports => {
    const message = read(bytes);
    const keys = message.staticAccountKeys.map((key) => key.toBase58());
    const { numRequiredSignatures, numReadonlySignedAccounts } = message.header;
    if (keys[0] !== feePayer || numRequiredSignatures !== 1 || numReadonlySignedAccounts !== 0) {
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
        throw new Error(
          `refused to sign: a message with sweeps must end with a guard of ${guard} lamports`,
        );
    }
    const allowedTexts = new Set(sweeps.flatMap(sweepInstructions).map(textOf));
    for (const instruction of instructions) {
      const { programIdIndex, accountKeyIndexes } = instruction;
      const programId = keys[programIdIndex] ?? "unknown";
      if (!ALLOWED_PROGRAMS.includes(programId))
        throw new Error(`refused to sign: the message calls ${programId}`);
      if (
        accountKeyIndexes.some((i) => keys[i] === feePayer) &&
        !allowedTexts.delete(toText(instruction))
      ) {
        throw new Error(
          `refused to sign: the fee payer is an account of an instruction of ${programId}`,
        );
      }
    }
    const priority = priorityOf(message);
    if (priority > maxPriorityFeeLamports) {
      throw new Error(
        `refused to sign: a priority fee of ${priority} lamports is above the cap of ${maxPriorityFeeLamports}`,
      );
    }
    return toLamports(BASE_FEE_LAMPORTS + priority);
  };
}

/** Decodes a message of version 1, with a library other than the encoder's. */
function read(bytes: Uint8Array): MessageV1 {
  let message: VersionedMessage | undefined;
  try {
    message = VersionedMessage.deserialize(bytes);
  } catch {
    // Refused below.
  }
  if (message?.version !== 1) throw new Error("refused to sign: the message is not of version 1");
  return message;
}

/** Returns a message's priority fee. */
function priorityOf({ transactionConfig }: MessageV1): bigint {
  const { computeUnitLimit, loadedAccountsDataSizeLimit, heapSize, priorityFee } =
    transactionConfig;
  if (!computeUnitLimit) throw new Error("refused to sign: no compute-unit limit is set");
  if (loadedAccountsDataSizeLimit !== LOADED_DATA_LIMIT)
    throw new Error("refused to sign: the limit of loaded account data is not the chain's");
  if (heapSize !== null) throw new Error("refused to sign: the message requests a larger heap");
  return BigInt(priorityFee ?? 0);
}

/** Serializes an instruction's program, accounts and data for comparison. */
function textOf({ programAddress, accounts, data }: Instruction): string {
  return [programAddress, ...accounts.map(({ address }) => address), data.toString("hex")].join();
}

import { PublicKey, SystemProgram, TransactionInstruction, type AccountMeta } from "@solana/web3.js";
import { deriveAddress } from "../derive-address.ts";
import { ASSOCIATED_TOKEN_PROGRAM_ID, TOKEN_PROGRAM_ID, WRAPPED_SOL_MINT } from "../token-accounts.ts";
import type { CreatorVaults } from "./vaults.ts";

// The Anchor discriminators of the two instructions; their accounts are below.
// Source: the launch platform's published IDLs, programs 6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P and
// pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA.
const COLLECT_CREATOR_FEE = Buffer.from("1416567bc61cdb84", "hex");
const TRANSFER_CREATOR_FEES_TO_PUMP = Buffer.from("8b348655e4e56cf1", "hex");

/** A creator (`address`) and its vaults. */
interface Creator extends CreatorVaults {
  readonly address: string;
}

export type Launchpad = ReturnType<typeof createLaunchpad>;

/** Builds the launch platform's instructions. They need no signer: anyone may call them for any creator. */
export function createLaunchpad(programs: { launchpadProgramId: string; launchpadAmmProgramId: string }) {
  const launchpad = withEventAuthority(programs.launchpadProgramId);
  const amm = withEventAuthority(programs.launchpadAmmProgramId);

  return {
    /** Moves everything above the rent-exempt minimum from the creator vault to the creator. */
    collectCreatorFee: ({ address, creatorVault }: Creator) =>
      new TransactionInstruction({
        programId: launchpad.programId,
        keys: [
          writable(address),
          writable(creatorVault),
          readOnly(SystemProgram.programId),
          readOnly(launchpad.eventAuthority),
          readOnly(launchpad.programId),
        ],
        data: COLLECT_CREATOR_FEE,
      }),

    /**
     * Unwraps everything in the AMM's vault, which must exist, into the creator vault, which need not. Must come
     * before `collectCreatorFee` in the transaction.
     */
    transferCreatorFeesToPump: ({ address, creatorVault, ammVaultAuthority, ammVault }: Creator) =>
      new TransactionInstruction({
        programId: amm.programId,
        keys: [
          readOnly(WRAPPED_SOL_MINT),
          readOnly(TOKEN_PROGRAM_ID),
          readOnly(SystemProgram.programId),
          readOnly(ASSOCIATED_TOKEN_PROGRAM_ID),
          readOnly(address),
          writable(ammVaultAuthority),
          writable(ammVault),
          writable(creatorVault),
          readOnly(amm.eventAuthority),
          readOnly(amm.programId),
        ],
        data: TRANSFER_CREATOR_FEES_TO_PUMP,
      }),
  };
}

function withEventAuthority(program: string): { programId: PublicKey; eventAuthority: PublicKey } {
  const programId = new PublicKey(program);
  return { programId, eventAuthority: deriveAddress([Buffer.from("__event_authority")], programId) };
}

function writable(address: string): AccountMeta {
  return { pubkey: new PublicKey(address), isSigner: false, isWritable: true };
}

function readOnly(key: PublicKey | string): AccountMeta {
  return { pubkey: new PublicKey(key), isSigner: false, isWritable: false };
}

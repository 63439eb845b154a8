import { getBase58Decoder } from "@solana/codecs-strings";
import { PublicKey, SystemProgram } from "@solana/web3.js";
import { deriveAddress } from "../primitives/derive-address.ts";
import {
  ASSOCIATED_TOKEN_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
  WRAPPED_SOL_MINT,
} from "./token-accounts.ts";
import type { CoinAddresses } from "./coin-addresses.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "./program-ids.ts";
import type { Creator } from "./vaults.ts";

// The Anchor discriminators of the instructions; their accounts are below. Both programs use
// SWEEP_CREATOR_FEE. Sources: the launch platform's published IDLs, programs
// 6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P and pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA, and
// https://github.com/pump-fun/pump-public-docs/blob/main/docs/instructions/SWEEP_FEES.md,
// docs/CREATOR_FEE_SHARING.md
const COLLECT_CREATOR_FEE = Buffer.from("1416567bc61cdb84", "hex");
const TRANSFER_CREATOR_FEES_TO_PUMP = Buffer.from("8b348655e4e56cf1", "hex");
const SWEEP_CREATOR_FEE = Buffer.from("20f6bf3408c949ba", "hex");
const DISTRIBUTE_CREATOR_FEES = Buffer.from("a572670079cef751", "hex");
/** Takes a payer, and whether to create token accounts (a bool). */
const DISTRIBUTE_CREATOR_FEES_V2 = Buffer.from("ffcb134ff444089f", "hex");

const toBase58 = (...parts: Buffer[]) => getBase58Decoder().decode(Buffer.concat(parts));
/**
 * The data (in base58) of each instruction that distributes a coin's shared fees, with the indexes
 * of the coin's mint and of the vault that it pays from.
 */
export const DISTRIBUTIONS: ReadonlyMap<string, { mint: number; vault: number }> = new Map([
  [toBase58(DISTRIBUTE_CREATOR_FEES), { mint: 0, vault: 3 }],
  [toBase58(DISTRIBUTE_CREATOR_FEES_V2, Buffer.of(0)), { mint: 1, vault: 4 }],
  [toBase58(DISTRIBUTE_CREATOR_FEES_V2, Buffer.of(1)), { mint: 1, vault: 4 }],
]);
/** The data (in base58) of both programs' instruction that sweeps a coin's fees. */
export const SWEEP = toBase58(SWEEP_CREATOR_FEE);
/** The indexes of a sweep's accounts. A pool's sweep names no mint. */
export const CURVE_SWEEP = { mint: 2, creatorVault: 9 };
export const POOL_SWEEP = { pool: 2, ammVaultAuthority: 6 };

const SYSTEM_PROGRAM = SystemProgram.programId.toBase58();

interface NamedAccount {
  readonly address: string;
  /** 1 if the account is written, and 2 more if it signs. */
  readonly role: number;
}

/**
 * In the form of @solana/transaction-messages. Addresses are base58 text, so that computing a
 * message's size converts no keys.
 */
export interface Instruction {
  readonly programAddress: string;
  readonly accounts: readonly NamedAccount[];
  readonly data: Buffer;
}

const launchpad = deriveAccounts(LAUNCHPAD_PROGRAM_ID, "global");
const amm = deriveAccounts(LAUNCHPAD_AMM_PROGRAM_ID, "global_config");

// Anyone may call these instructions for any creator; only a sweep's payer must sign.

/** Moves everything above the rent-exempt minimum from the creator vault to the creator. */
export const collectCreatorFee = ({ address, creatorVault }: Creator) => ({
  programAddress: launchpad.program,
  accounts: [
    writable(address),
    writable(creatorVault),
    readOnly(SYSTEM_PROGRAM),
    readOnly(launchpad.eventAuthority),
    readOnly(launchpad.program),
  ],
  data: COLLECT_CREATOR_FEE,
});

/**
 * Unwraps the AMM vault (must exist) into the creator vault (need not exist). Must precede
 * `collectCreatorFee`.
 */
export const transferCreatorFeesToPump = ({
  address,
  creatorVault,
  ammVaultAuthority,
  ammVault,
}: Creator) => ({
  programAddress: amm.program,
  accounts: [
    readOnly(WRAPPED_SOL_MINT),
    readOnly(TOKEN_PROGRAM_ID),
    readOnly(SYSTEM_PROGRAM),
    readOnly(ASSOCIATED_TOKEN_PROGRAM_ID),
    readOnly(address),
    writable(ammVaultAuthority),
    writable(ammVault),
    writable(creatorVault),
    readOnly(amm.eventAuthority),
    readOnly(amm.program),
  ],
  data: TRANSFER_CREATOR_FEES_TO_PUMP,
});

/**
 * Moves the creator fee, if any, from a coin's curve to the creator vault. The coin must trade in
 * SOL. Must precede `collectCreatorFee`. `payer` pays for growing an old curve, and the rent of a
 * missing creator vault.
 */
export const sweepCurve = (
  payer: string,
  { creatorVault, vaultTokens }: Creator,
  { mint, curve, curveTokens }: CoinAddresses,
) => ({
  programAddress: launchpad.program,
  accounts: [
    signer(payer),
    readOnly(launchpad.config),
    readOnly(mint),
    readOnly(WRAPPED_SOL_MINT),
    readOnly(TOKEN_PROGRAM_ID),
    readOnly(ASSOCIATED_TOKEN_PROGRAM_ID),
    readOnly(SYSTEM_PROGRAM),
    writable(curve),
    writable(curveTokens),
    writable(creatorVault),
    writable(vaultTokens),
    readOnly(launchpad.eventAuthority),
    readOnly(launchpad.program),
  ],
  data: SWEEP_CREATOR_FEE,
});

/**
 * Moves the creator fee, if any, from a coin's pool to the AMM vault. Must precede
 * `transferCreatorFeesToPump`. `payer` pays for growing an old pool, and the rent of a missing AMM
 * vault.
 */
export const sweepPool = (
  payer: string,
  { ammVaultAuthority, ammVault }: Creator,
  { pool, poolTokens }: CoinAddresses,
) => ({
  programAddress: amm.program,
  accounts: [
    signer(payer),
    readOnly(amm.config),
    writable(pool),
    readOnly(WRAPPED_SOL_MINT),
    readOnly(TOKEN_PROGRAM_ID),
    writable(poolTokens),
    readOnly(ammVaultAuthority),
    writable(ammVault),
    readOnly(SYSTEM_PROGRAM),
    readOnly(ASSOCIATED_TOKEN_PROGRAM_ID),
    readOnly(amm.eventAuthority),
    readOnly(amm.program),
  ],
  data: SWEEP_CREATOR_FEE,
});

/**
 * Pays the shareholders, all or none, everything that the sharing config's creator vault holds
 * above its rent-exempt minimum. Fails while fees wait on the coin's curve. Uses the instruction's
 * first version, which needs no payer.
 */
export const distributeCreatorFees = (
  { mint, curve, sharingConfig }: CoinAddresses,
  shareholders: readonly string[],
) => ({
  programAddress: launchpad.program,
  accounts: [
    readOnly(mint),
    readOnly(curve),
    readOnly(sharingConfig.address),
    writable(sharingConfig.creatorVault),
    readOnly(SYSTEM_PROGRAM),
    readOnly(launchpad.eventAuthority),
    readOnly(launchpad.program),
    ...shareholders.map(writable),
  ],
  data: DISTRIBUTE_CREATOR_FEES,
});

/** For each place where fees wait: the instruction that sweeps it. */
export const SWEEPS = { CURVE: sweepCurve, POOL: sweepPool };

function deriveAccounts(program: string, configSeed: string) {
  return {
    program,
    config: deriveAddress([configSeed], program),
    eventAuthority: deriveAddress(["__event_authority"], program),
  };
}

const signer = (address: string): NamedAccount => ({ address, role: 3 });
const writable = (address: string): NamedAccount => ({ address, role: 1 });
const readOnly = (address: string): NamedAccount => ({ address, role: 0 });

/**
 * Returns a transfer from `feePayer` to itself. It moves nothing, but fails if `feePayer` lacks
 * `lamports`.
 */
export function guardInstruction(feePayer: string, lamports: bigint): Instruction {
  const key = new PublicKey(feePayer);
  const { data } = SystemProgram.transfer({ fromPubkey: key, toPubkey: key, lamports });
  return {
    programAddress: SYSTEM_PROGRAM,
    accounts: [signer(feePayer), writable(feePayer)],
    data,
  };
}

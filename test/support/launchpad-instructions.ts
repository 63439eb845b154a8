import { PublicKey, TransactionInstruction } from "@solana/web3.js";
import type { Instruction } from "../../src/chain/launchpad/instructions.ts";

// The launch platform's instructions, written from its documents and without src/chain:
// https://github.com/pump-fun/pump-public-docs/blob/main/docs/instructions/SWEEP_FEES.md,
// CREATOR_FEE_SHARING.md and the IDLs beside them.

export const PUMP = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
export const AMM = "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA";
export const FEES = "pfeeUxB6jkeY1Hxd7CsFCAjcbHA9rWtchMGdZ6VojVZ";
export const WSOL = "So11111111111111111111111111111111111111112";
export const TOKEN_PROGRAM = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const ASSOCIATED_TOKEN_PROGRAM = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
export const SYSTEM_PROGRAM = "11111111111111111111111111111111";

const key = (address: string) => new PublicKey(address).toBytes();

/** The address that a program derives from text and keys. */
export function pda(program: string, ...seeds: (string | Uint8Array)[]): string {
  const bytes = seeds.map((seed) => (typeof seed === "string" ? Buffer.from(seed) : seed));
  return PublicKey.findProgramAddressSync(bytes, new PublicKey(program))[0].toBase58();
}

/** The associated token account of `owner`. */
export const ata = (owner: string, mint: string) =>
  pda(ASSOCIATED_TOKEN_PROGRAM, key(owner), key(TOKEN_PROGRAM), key(mint));

export const curveOf = (mint: string) => pda(PUMP, "bonding-curve", key(mint));
export const poolOf = (mint: string) =>
  pda(
    AMM,
    "pool",
    Uint8Array.of(0, 0),
    key(pda(PUMP, "pool-authority", key(mint))),
    key(mint),
    key(WSOL),
  );
export const sharingConfigOf = (mint: string) => pda(FEES, "sharing-config", key(mint));
export const creatorVaultOf = (creator: string) => pda(PUMP, "creator-vault", key(creator));
export const vaultAuthorityOf = (creator: string) => pda(AMM, "creator_vault", key(creator));

/** An account with its flags: "s" for a signer, "w" for writable, "" for neither. */
export type ListedAccount = readonly [address: string, flags: "" | "w" | "s" | "sw"];

/** An instruction from the lists below, with `accounts` in place of the listed ones. */
export function toInstruction(
  { program, data }: { program: string; data: string },
  accounts: readonly ListedAccount[],
): TransactionInstruction {
  return new TransactionInstruction({
    programId: new PublicKey(program),
    keys: accounts.map(([address, flags]) => ({
      pubkey: new PublicKey(address),
      isSigner: flags.includes("s"),
      isWritable: flags.includes("w"),
    })),
    data: Buffer.from(data, "hex"),
  });
}

/** An instruction of src/chain in web3.js's form. */
export function toTransactionInstruction({
  programAddress,
  accounts,
  data,
}: Instruction): TransactionInstruction {
  const keys = accounts.map(({ address, role }) => ({
    ...{ pubkey: new PublicKey(address), isSigner: role >= 2, isWritable: role % 2 === 1 },
  }));
  return new TransactionInstruction({ programId: new PublicKey(programAddress), keys, data });
}

interface Listed {
  readonly program: string;
  readonly data: string;
  readonly accounts: readonly ListedAccount[];
}

export const sweepCurve = (
  payer: string,
  mint: string,
  creator: string,
  quoteMint = WSOL,
): Listed => ({
  program: PUMP,
  data: "20f6bf3408c949ba",
  accounts: [
    [payer, "sw"],
    [pda(PUMP, "global"), ""],
    [mint, ""],
    [quoteMint, ""],
    [TOKEN_PROGRAM, ""],
    [ASSOCIATED_TOKEN_PROGRAM, ""],
    [SYSTEM_PROGRAM, ""],
    [curveOf(mint), "w"],
    [ata(curveOf(mint), quoteMint), "w"],
    [creatorVaultOf(creator), "w"],
    [ata(creatorVaultOf(creator), quoteMint), "w"],
    [pda(PUMP, "__event_authority"), ""],
    [PUMP, ""],
  ],
});

export const sweepPool = (payer: string, mint: string, creator: string): Listed => ({
  program: AMM,
  data: "20f6bf3408c949ba",
  accounts: [
    [payer, "sw"],
    [pda(AMM, "global_config"), ""],
    [poolOf(mint), "w"],
    [WSOL, ""],
    [TOKEN_PROGRAM, ""],
    [ata(poolOf(mint), WSOL), "w"],
    [vaultAuthorityOf(creator), ""],
    [ata(vaultAuthorityOf(creator), WSOL), "w"],
    [SYSTEM_PROGRAM, ""],
    [ASSOCIATED_TOKEN_PROGRAM, ""],
    [pda(AMM, "__event_authority"), ""],
    [AMM, ""],
  ],
});

export const transferCreatorFeesToPump = (creator: string): Listed => ({
  program: AMM,
  data: "8b348655e4e56cf1",
  accounts: [
    [WSOL, ""],
    [TOKEN_PROGRAM, ""],
    [SYSTEM_PROGRAM, ""],
    [ASSOCIATED_TOKEN_PROGRAM, ""],
    [creator, ""],
    [vaultAuthorityOf(creator), "w"],
    [ata(vaultAuthorityOf(creator), WSOL), "w"],
    [creatorVaultOf(creator), "w"],
    [pda(AMM, "__event_authority"), ""],
    [AMM, ""],
  ],
});

export const collectCreatorFee = (creator: string): Listed => ({
  program: PUMP,
  data: "1416567bc61cdb84",
  accounts: [
    [creator, "w"],
    [creatorVaultOf(creator), "w"],
    [SYSTEM_PROGRAM, ""],
    [pda(PUMP, "__event_authority"), ""],
    [PUMP, ""],
  ],
});

/** Of a coin that trades in SOL; `shareholders` in the order of its sharing config. */
export const distributeCreatorFees = (mint: string, shareholders: readonly string[]): Listed => ({
  program: PUMP,
  data: "a572670079cef751",
  accounts: [
    [mint, ""],
    [curveOf(mint), ""],
    [sharingConfigOf(mint), ""],
    [creatorVaultOf(sharingConfigOf(mint)), "w"],
    [SYSTEM_PROGRAM, ""],
    [pda(PUMP, "__event_authority"), ""],
    [PUMP, ""],
    ...shareholders.map((shareholder): ListedAccount => [shareholder, "w"]),
  ],
});

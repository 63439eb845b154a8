import { PublicKey, SystemProgram, TransactionInstruction } from "@solana/web3.js";
import { deriveAddress, type AccountAddresses } from "./addresses.ts";

/**
 * The Anchor discriminator of `collect_creator_fee`.
 * Source: the launch platform's published IDL, program 6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P.
 */
const COLLECT_CREATOR_FEE = Buffer.from("1416567bc61cdb84", "hex");

export type CollectCreatorFee = (account: AccountAddresses) => TransactionInstruction;

/**
 * The launch platform's instruction that moves everything above the rent-exempt minimum from a creator's
 * vault to the creator. Nobody but the fee payer signs: anyone may call it for anyone.
 */
export function createCollectCreatorFee(launchpadProgramId: string): CollectCreatorFee {
  const programId = new PublicKey(launchpadProgramId);
  const eventAuthority = deriveAddress([Buffer.from("__event_authority")], programId);

  return ({ address, creatorVault }) =>
    new TransactionInstruction({
      programId,
      keys: [
        { pubkey: new PublicKey(address), isSigner: false, isWritable: true },
        { pubkey: new PublicKey(creatorVault), isSigner: false, isWritable: true },
        { pubkey: SystemProgram.programId, isSigner: false, isWritable: false },
        { pubkey: eventAuthority, isSigner: false, isWritable: false },
        { pubkey: programId, isSigner: false, isWritable: false },
      ],
      data: COLLECT_CREATOR_FEE,
    });
}

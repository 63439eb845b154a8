import { PublicKey, SystemProgram, TransactionInstruction } from "@solana/web3.js";
import { TOKEN_PROGRAM_ID } from "../../src/chain/launchpad/token-accounts.ts";
import { DerivedCreator } from "../../src/chain/launchpad/vaults.ts";
import { setWrappedSol } from "../../src/sandbox/chain/accounts.ts";
import type { Chain } from "../../src/sandbox/chain/chain.ts";
import { sendPaid } from "../../test/support/faucet.ts";

/** The number of the Token program's instruction. */
const SYNC_NATIVE = 17;

/**
 * Pays `lamports` of wrapped SOL into the AMM vault, as trades after the bonding curve do; returns
 * the signature. Creates the vault if it is missing.
 */
export function addAmmFees(chain: Chain, creator: string, lamports: bigint): string {
  const { ammVault, ammVaultAuthority } = new DerivedCreator(creator);
  if (!chain.account(ammVault)) setWrappedSol(chain, ammVaultAuthority, 0n);
  const toPubkey = new PublicKey(ammVault);
  return sendPaid(chain, (fromPubkey) => [
    SystemProgram.transfer({ fromPubkey, toPubkey, lamports }),
    new TransactionInstruction({
      programId: new PublicKey(TOKEN_PROGRAM_ID),
      keys: [{ pubkey: toPubkey, isSigner: false, isWritable: true }],
      data: Buffer.of(SYNC_NATIVE),
    }),
  ]);
}

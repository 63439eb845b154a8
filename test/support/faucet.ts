import {
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
} from "@solana/web3.js";
import { DerivedCreator } from "../../src/chain/launchpad/vaults.ts";
import type { Chain } from "../../src/sandbox/chain/chain.ts";
import { decodeTransaction } from "../../src/sandbox/chain/wire-transaction.ts";

/** More than any of these transactions pays. */
const PAYER_LAMPORTS = 1_000_000_000_000_000n;

/**
 * Sends a transaction of a payer that exists only for it, so that no two transactions are the same.
 * Returns the signature. Throws if it fails.
 */
export function sendPaid(
  chain: Chain,
  instructionsFor: (payer: PublicKey) => readonly TransactionInstruction[],
): string {
  const payer = Keypair.generate();
  const { publicKey } = payer;
  chain.setBalance(publicKey.toBase58(), PAYER_LAMPORTS);
  const transaction = new Transaction({
    feePayer: publicKey,
    ...chain.latestBlockhash("processed"),
  }).add(...instructionsFor(publicKey));
  transaction.sign(payer);
  const wire = decodeTransaction(transaction.serialize());
  const err = chain.send(wire);
  if (err) throw new Error(`The transaction failed: ${JSON.stringify(err)}`);
  return wire.signature;
}

/** Transfers lamports to an address, as anyone can. Returns the signature. */
export function transfer(chain: Chain, to: string, lamports: bigint): string {
  const toPubkey = new PublicKey(to);
  return sendPaid(chain, (fromPubkey) => [
    SystemProgram.transfer({ fromPubkey, toPubkey, lamports }),
  ]);
}

/**
 * Pays `lamports` into the creator vault in a transaction, as trades on the bonding curve do. The
 * first payment adds the rent-exempt minimum, without which the vault could not exist.
 */
export function addCreatorFees(chain: Chain, creator: string, lamports: bigint): string {
  const { creatorVault } = new DerivedCreator(creator);
  const minimum = chain.balance(creatorVault) === 0n ? chain.rentExemptMinimum(0) : 0n;
  return transfer(chain, creatorVault, minimum + lamports);
}

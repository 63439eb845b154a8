import { getBase58Decoder } from "@solana/codecs-strings";
import { ComputeBudgetProgram, VersionedTransaction, type Keypair, type Message } from "@solana/web3.js";
import { toLamports, type Lamports } from "./lamports.ts";

/** The fee of one signature, before any priority fee. Source: the chain's fee structure, unchanged since its start. */
export const BASE_FEE_LAMPORTS = toLamports(5_000);

const HOUR_MS = 3_600_000;

/** A transaction ready to be sent, and the signature it is known by. */
export interface SignedTransaction {
  readonly base64: string;
  readonly signature: string;
}

/** Part of the hour's budget, taken before a transaction is signed. */
export interface FeeReservation {
  /** Puts what was really paid (0 for a transaction that never landed) in place of what was reserved. */
  settle(feeLamports: Lamports): void;
}

export type FeePayer = ReturnType<typeof createFeePayer>;

/**
 * The only holder of the fee payer's key, and of the budget that all its transactions share: at most
 * `budgetLamportsPerHour` in any hour. It signs nothing but calls of `programIds` and of the compute
 * budget program in which it is the fee payer and takes no other part.
 */
export function createFeePayer(needs: {
  keypair: Keypair;
  programIds: readonly string[];
  budgetLamportsPerHour: Lamports;
}) {
  const { keypair, budgetLamportsPerHour } = needs;
  const allowedPrograms = new Set([...needs.programIds, ComputeBudgetProgram.programId.toBase58()]);
  const spent: { at: number; lamports: bigint }[] = [];

  function assertHarmless(message: Message): void {
    const [payer] = message.accountKeys;
    if (!payer?.equals(keypair.publicKey) || message.header.numRequiredSignatures !== 1) {
      throw new Error("refused to sign: the fee payer must be the only signer");
    }
    for (const { programIdIndex, accounts } of message.instructions) {
      const program = message.accountKeys[programIdIndex]?.toBase58() ?? "unknown";
      if (!allowedPrograms.has(program)) throw new Error(`refused to sign: a call of ${program}`);
      if (accounts.includes(0))
        throw new Error(`refused to sign: the fee payer is an account of a call of ${program}`);
    }
  }

  return {
    publicKey: keypair.publicKey,

    /** Takes `maxFeeLamports` out of the hour's budget; undefined when less than that is left. */
    reserve(maxFeeLamports: Lamports): FeeReservation | undefined {
      const now = performance.now();
      while (spent[0] && spent[0].at <= now - HOUR_MS) spent.shift();
      const used = spent.reduce((sum, { lamports }) => sum + lamports, 0n);
      if (used + maxFeeLamports > budgetLamportsPerHour) return undefined;
      const entry = { at: now, lamports: maxFeeLamports as bigint };
      spent.push(entry);
      return {
        settle(feeLamports) {
          entry.lamports = feeLamports;
        },
      };
    },

    /** Signs `message`; asynchronous so that a remote signer can take this place. Throws when it is not harmless. */
    // eslint-disable-next-line @typescript-eslint/require-await
    async sign(message: Message): Promise<SignedTransaction> {
      assertHarmless(message);
      const transaction = new VersionedTransaction(message);
      transaction.sign([keypair]);
      return {
        base64: Buffer.from(transaction.serialize()).toString("base64"),
        signature: getBase58Decoder().decode(transaction.signatures[0]!),
      };
    },
  };
}

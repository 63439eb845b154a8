import { address, lamports as toLamports } from "@solana/kit";
import type { EncodedAccount } from "@solana/kit";
import { ComputeBudgetProgram, Keypair, PublicKey, SystemProgram, Transaction } from "@solana/web3.js";
import type { TransactionInstruction } from "@solana/web3.js";
import { FailedTransactionMetadata, LiteSVM, Rent } from "litesvm";
import type { TransactionMetadata } from "litesvm";
import { createSlots } from "./slots.ts";
import type { Commitment, Slots } from "./slots.ts";
import { toTransactionError } from "./transaction-errors.ts";
import type { TransactionError } from "./transaction-errors.ts";
import { decodeTransaction, isSigned } from "./transactions.ts";
import type { WireTransaction } from "./transactions.ts";

export interface ChainAccount {
  readonly lamports: bigint;
  readonly owner: string;
  readonly data: Uint8Array;
  readonly executable: boolean;
}

/** An instruction that a program called; indexes are those of the transaction's accounts. */
export interface InnerInstruction {
  readonly programIdIndex: number;
  readonly accounts: readonly number[];
  readonly data: Uint8Array;
  readonly stackHeight: number;
}

/** A transaction that paid its fee, whether its instructions then succeeded or not. */
export interface LandedTransaction extends WireTransaction {
  readonly slot: number;
  /** Seconds since 1970. */
  readonly blockTime: number;
  readonly err: TransactionError | null;
  readonly feeLamports: bigint;
  /** Lamports before and after, in the order of the message's accounts. */
  readonly preBalances: readonly bigint[];
  readonly postBalances: readonly bigint[];
  readonly logs: readonly string[];
  readonly unitsConsumed: number;
  /** One list for each instruction of the message. */
  readonly innerInstructions: readonly (readonly InnerInstruction[])[];
}

export interface Simulation {
  readonly err: TransactionError | null;
  readonly logs: readonly string[];
  readonly unitsConsumed: number;
  /** The accounts as they would be afterwards, by address: those that the transaction touches. */
  readonly accounts: ReadonlyMap<string, ChainAccount>;
}

/**
 * A chain of one node. A transaction executes at once, in the current slot: `processed` in that slot,
 * `confirmed` from the next one on, `finalized` 32 slots later. Accounts have no history: they are read as
 * they are now, at any commitment.
 */
export interface Chain extends Slots {
  /** Null when there is none; an account without lamports does not exist. */
  account(address: string): ChainAccount | null;
  balance(address: string): bigint;
  /** Out of nothing, without a transaction; what was there before is gone. */
  setAccount(address: string, account: Omit<ChainAccount, "executable">): void;
  /** The same for an account of the System program, without data. */
  setBalance(address: string, lamports: bigint): void;
  rentExemptMinimum(dataBytes: number): bigint;
  /** Null: it landed and succeeded. After an error, `landed` tells whether it landed and paid its fee. */
  send(transaction: WireTransaction): TransactionError | null;
  /** Asks for no signatures, and changes nothing. The blockhash must be known at that commitment. */
  simulate(transaction: WireTransaction, commitment: Commitment): Simulation;
  /** The transaction with that signature (base58), if it landed. */
  landed(signature: string): LandedTransaction | undefined;
  /** Every transaction that landed, oldest first. */
  ledger(): LandedTransaction[];
  /** Has the faucet pay for and sign a transaction like any other. Throws when it fails. Returns the signature. */
  sendFromFaucet(instructionsFor: (faucet: PublicKey) => readonly TransactionInstruction[]): string;
  /** Pays from the faucet, in the same way. */
  transfer(to: string, lamports: bigint): string;
  /** Micro-lamports a unit that `getRecentPrioritizationFees` tells: dealt out to the slots in turn. */
  setPriorityFees(fees: readonly [number, ...number[]]): void;
  priorityFee(slot: number): number;
  /** Stops the slots. */
  close(): void;
}

/** Mainnet's rent, in lamports a byte: 650,240 for an account without data. */
const RENT = new Rent(5080n, 1.0, 50);

/** In lamports; small enough for every balance to be exact as a JSON number. */
const FAUCET_LAMPORTS = 5_000_000n * 1_000_000_000n;

const SYSTEM_PROGRAM = "11111111111111111111111111111111";

/** More than any transaction of the faucet needs; what it sets costs nothing. */
const FAUCET_UNITS = 200_000;

/**
 * Starts a chain on which `programs` are deployed: their ids, and the files they are loaded from. The
 * programs of tokens and the mint of wrapped SOL are there as well.
 * `slotMs` is the length of a slot, 400 on the real chain; 0: slots pass only by `advanceSlots`.
 */
export function createChain(options: {
  slotMs: number;
  programs: readonly { id: string; file: string }[];
}): Chain {
  // Signatures, blockhashes and repetitions are checked here: LiteSVM only ever knows the latest blockhash.
  const svm = new LiteSVM().withSigverify(false).withBlockhashCheck(false).withTransactionHistory(0n);
  svm.setRent(RENT);
  svm.withNativeMints();
  for (const { id, file } of options.programs) svm.addProgramFromFile(address(id), file);

  const slots = createSlots(svm);
  const ledger = new Map<string, LandedTransaction>();
  const faucet = Keypair.generate();
  let sentFromFaucet = 0;
  let priorityFees: readonly [number, ...number[]] = [0];

  const timer = options.slotMs > 0 ? setInterval(slots.advanceSlots, options.slotMs, 1).unref() : undefined;

  function balance(of: string): bigint {
    return svm.getBalance(address(of)) ?? 0n;
  }

  function setAccount(of: string, { lamports, owner, data }: Omit<ChainAccount, "executable">): void {
    svm.setAccount({
      address: address(of),
      lamports: toLamports(lamports),
      programAddress: address(owner),
      data,
      space: BigInt(data.length),
      executable: false,
    });
  }

  function setBalance(of: string, lamports: bigint): void {
    setAccount(of, { lamports, owner: SYSTEM_PROGRAM, data: new Uint8Array() });
  }
  setBalance(faucet.publicKey.toBase58(), FAUCET_LAMPORTS);

  /** What the real chain finds before it executes anything, in its order. */
  function refusalOf(transaction: WireTransaction, commitment: Commitment): TransactionError | null {
    if (!slots.isBlockhashValid(transaction.message.lifetimeToken, commitment)) return "BlockhashNotFound";
    return ledger.has(transaction.signature) ? "AlreadyProcessed" : null;
  }

  function send(transaction: WireTransaction): TransactionError | null {
    if (!isSigned(transaction)) return "SignatureFailure";
    const refusal = refusalOf(transaction, "processed");
    if (refusal) return refusal;

    const accounts = transaction.message.staticAccounts;
    const preBalances = accounts.map(balance);
    const result = svm.sendTransaction(transaction.decoded);
    const failed = result instanceof FailedTransactionMetadata;
    const err = failed ? toTransactionError(result.err()) : null;
    const meta = failed ? result.meta() : result;
    // LiteSVM names the signature of a transaction that paid its fee, and of no other.
    if (meta.signature().every((byte) => byte === 0)) return err;

    const postBalances = accounts.map(balance);
    ledger.set(transaction.signature, {
      ...transaction,
      slot: slots.slot("processed"),
      blockTime: slots.blockTime(),
      err,
      // A transaction only moves lamports between its accounts: what is missing afterwards is the fee.
      feeLamports: sum(preBalances) - sum(postBalances),
      preBalances,
      postBalances,
      logs: meta.logs(),
      unitsConsumed: Number(meta.computeUnitsConsumed()),
      innerInstructions: innerInstructionsOf(meta),
    });
    return err;
  }

  function sendFromFaucet(instructionsFor: (faucet: PublicKey) => readonly TransactionInstruction[]): string {
    const transaction = new Transaction({
      feePayer: faucet.publicKey,
      ...slots.latestBlockhash("processed"),
    }).add(
      // Two equal transactions in one slot would be one: the limit, which costs nothing, differs.
      ComputeBudgetProgram.setComputeUnitLimit({ units: FAUCET_UNITS + (sentFromFaucet++ % 1_000_000) }),
      ...instructionsFor(faucet.publicKey),
    );
    transaction.sign(faucet);
    const wire = decodeTransaction(transaction.serialize());
    const err = send(wire);
    if (err) throw new Error(`The faucet's transaction failed: ${JSON.stringify(err)}`);
    return wire.signature;
  }

  return {
    ...slots,
    account(of) {
      const account = svm.getAccount(address(of));
      return account.exists ? toChainAccount(account) : null;
    },
    balance,
    setAccount,
    setBalance,
    rentExemptMinimum: (dataBytes) => svm.minimumBalanceForRentExemption(BigInt(dataBytes)),
    send,
    simulate(transaction, commitment) {
      const refusal = refusalOf(transaction, commitment);
      if (refusal) return { err: refusal, logs: [], unitsConsumed: 0, accounts: new Map() };
      const result = svm.simulateTransaction(transaction.decoded);
      const failed = result instanceof FailedTransactionMetadata;
      const meta = result.meta();
      return {
        err: failed ? toTransactionError(result.err()) : null,
        logs: meta.logs(),
        unitsConsumed: Number(meta.computeUnitsConsumed()),
        accounts: new Map(
          failed ? [] : result.postAccounts().map((account) => [account.address, toChainAccount(account)]),
        ),
      };
    },
    landed: (signature) => ledger.get(signature),
    ledger: () => [...ledger.values()],
    sendFromFaucet,
    transfer(to, lamports) {
      const toPubkey = new PublicKey(to);
      return sendFromFaucet((fromPubkey) => [SystemProgram.transfer({ fromPubkey, toPubkey, lamports })]);
    },
    setPriorityFees(fees) {
      priorityFees = fees;
    },
    priorityFee: (slot) => priorityFees[slot % priorityFees.length]!,
    close() {
      clearInterval(timer);
    },
  };
}

function toChainAccount(account: EncodedAccount): ChainAccount {
  const { lamports, programAddress: owner, data, executable } = account;
  return { lamports, owner, data: data as Uint8Array, executable };
}

function innerInstructionsOf(meta: TransactionMetadata): InnerInstruction[][] {
  return meta.innerInstructions().map((list) =>
    list.map((inner) => {
      const instruction = inner.instruction();
      return {
        programIdIndex: instruction.programIdIndex(),
        accounts: [...instruction.accounts()],
        data: instruction.data(),
        stackHeight: inner.stackHeight(),
      };
    }),
  );
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}

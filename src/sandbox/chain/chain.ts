import type { Address, EncodedAccount } from "@solana/kit";
import { Account, FailedTransactionMetadata, LiteSVM, Rent } from "litesvm";
import type { TransactionMetadata } from "litesvm";
import type { LiteSvm } from "litesvm/dist/internal.js";
import { keyAt, toKeyBytes } from "../../chain/primitives/derive-address.ts";
import type { TransactionError } from "../../chain/rpc/rpc-results.ts";
import { createFaucet } from "./faucet.ts";
import { createSlots } from "./slots.ts";
import type { SlotOptions } from "./slots.ts";
import { toTransactionError } from "./transaction-errors.ts";
import { isSigned } from "./wire-transaction.ts";
import type { WireTransaction } from "./wire-transaction.ts";

export interface ChainAccount {
  readonly lamports: bigint;
  readonly owner: string;
  readonly data: Uint8Array;
  readonly executable: boolean;
}

/** A cross-program invocation. The indexes refer to the accounts of the transaction's message. */
export interface InnerInstruction {
  readonly programIdIndex: number;
  readonly accounts: readonly number[];
  readonly data: Uint8Array;
  readonly stackHeight: number;
}

/**
 * A transaction in a block. It paid its fee even if it failed.
 */
export interface SandboxTransaction extends WireTransaction {
  readonly slot: number;
  /** Seconds since 1970. */
  readonly blockTime: number;
  readonly err: TransactionError | null;
  readonly feeLamports: bigint;
  /**
   * Lamports before and after, in the order of the message's accounts; empty if the block omits
   * them.
   */
  readonly preBalances: readonly bigint[];
  readonly postBalances: readonly bigint[];
  readonly logs: readonly string[];
  readonly unitsConsumed: number;
  /** One list per instruction of the message. */
  readonly innerInstructions: readonly (readonly InnerInstruction[])[];
}

type Execution = Omit<SandboxTransaction, keyof WireTransaction | "slot" | "blockTime">;

interface Simulation {
  readonly err: TransactionError | null;
  readonly logs: readonly string[];
  readonly unitsConsumed: number;
  /** The accounts after the transaction, by address; empty after an error. */
  readonly accounts: ReadonlyMap<string, ChainAccount>;
  /** One list per instruction of the message. */
  readonly innerInstructions: SandboxTransaction["innerInstructions"];
}

export type Chain = ReturnType<typeof createChain>;

/**
 * Mainnet's rent in lamports per byte. The rent-exempt minimum of an account without data is then
 * 650,240.
 */
const RENT = 5_080;
/** Mainnet's limit. */
const MAX_ACCOUNTS = 64;

/** Small enough that every balance is exact as a JSON number. */
const FAUCET_LAMPORTS = 5_000_000n * 1_000_000_000n;

/** More than any benchmark sends. A transaction takes a few kilobytes. */
const KEPT_TRANSACTIONS = 20_000;

const SYSTEM_PROGRAM = "11111111111111111111111111111111";

/** Unchecked: LiteSVM refuses what is no address, and a second check is slow. */
const address = (text: string) => text as Address;

/**
 * A chain with a single node. A transaction executes at once, in the current block, and is
 * `finalized` with the next block; with the consensus `tower`, it is then `confirmed`, and
 * `finalized` 31 blocks later. Accounts have no history: reads return the current state at every
 * commitment.
 *
 * Starts with `programs` deployed, each loaded from a file, as well as the token programs
 * and the wrapped SOL mint. Slots last `slotMs` (200 on mainnet since October 2026); with 0 they
 * advance only through `advanceSlots`.
 */
export function createChain(
  options: SlotOptions & {
    slotMs: number;
    programs: readonly { id: string; file: string }[];
  },
) {
  // This module checks signatures, blockhashes and duplicates, because LiteSVM knows only the
  // latest blockhash.
  const svm = new LiteSVM()
    .withSigverify(false)
    .withBlockhashCheck(false)
    .withTransactionHistory(0n);
  svm.setRent(new Rent(BigInt(RENT), 1.0, 50));
  svm.withNativeMints();
  // LiteSVM's own access to accounts converts each address twice, and slowly: with it, a sandbox
  // takes half as long again to start.
  const inner = svm["inner"] as LiteSvm;
  for (const { id, file } of options.programs) svm.addProgramFromFile(address(id), file);

  const slots = createSlots(svm, options);
  const ledger = new Map<string, SandboxTransaction>();
  const listeners: ((transaction: SandboxTransaction) => void)[] = [];
  let priorityFee = 0;

  const timer =
    options.slotMs > 0 ? setInterval(slots.passSlot, options.slotMs).unref() : undefined;

  const faucet = createFaucet({ latestBlockhash: slots.latestBlockhash, send });
  setBalance(faucet.address, FAUCET_LAMPORTS);

  function balance(of: string): bigint {
    return inner.getBalance(toKeyBytes(of)) ?? 0n;
  }

  /** Creates or overwrites an account, without a transaction. */
  function setAccount(
    of: string,
    { lamports, owner, data }: Omit<ChainAccount, "executable">,
  ): void {
    inner.setAccount(toKeyBytes(of), new Account(lamports, data, toKeyBytes(owner), false, 0n));
  }

  /** Creates or overwrites an account of the System program, without data. */
  function setBalance(of: string, lamports: bigint): void {
    setAccount(of, { lamports, owner: SYSTEM_PROGRAM, data: new Uint8Array() });
  }

  /**
   * Executes a transaction without changing any state. Checks neither its signatures nor its
   * blockhash.
   */
  function simulate(transaction: WireTransaction): Simulation {
    if (transaction.message.staticAccounts.length > chain.maxAccounts) {
      const err = "TooManyAccountLocks";
      return { err, logs: [], unitsConsumed: 0, accounts: new Map(), innerInstructions: [] };
    }
    const result = svm.simulateTransaction(transaction.decoded);
    const isFailed = result instanceof FailedTransactionMetadata;
    const meta = result.meta();
    const accounts = isFailed ? [] : result.postAccounts();
    return {
      err: isFailed ? toTransactionError(result.err()) : null,
      logs: meta.logs(),
      unitsConsumed: Number(meta.computeUnitsConsumed()),
      accounts: new Map(accounts.map((account) => [account.address, toChainAccount(account)])),
      innerInstructions: innerInstructionsOf(meta),
    };
  }

  /** Adds a transaction to the current block. */
  function land(transaction: WireTransaction, execution: Execution): void {
    const landedTransaction = {
      ...transaction,
      slot: slots.slot("processed"),
      blockTime: slots.blockTime(),
      ...execution,
    };
    ledger.set(transaction.signature, landedTransaction);
    const [oldest] = ledger.keys();
    if (ledger.size > KEPT_TRANSACTIONS && oldest !== undefined) ledger.delete(oldest);
    for (const listener of listeners) listener(landedTransaction);
  }

  /**
   * Executes a transaction. After an error, `landed` shows whether the transaction still paid its
   * fee.
   */
  function send(transaction: WireTransaction): TransactionError | null {
    if (!isSigned(transaction)) return "SignatureFailure";
    if (!slots.isBlockhashValid(transaction.message.lifetimeToken)) return "BlockhashNotFound";
    if (ledger.has(transaction.signature)) return "AlreadyProcessed";

    const accounts = transaction.message.staticAccounts;
    if (accounts.length > chain.maxAccounts) return "TooManyAccountLocks";
    const preBalances = accounts.map(balance);
    const result = svm.sendTransaction(transaction.decoded);
    const isFailed = result instanceof FailedTransactionMetadata;
    const err = isFailed ? toTransactionError(result.err()) : null;
    const meta = isFailed ? result.meta() : result;
    // LiteSVM sets the signature only if the transaction paid its fee.
    if (meta.signature().every((byte) => byte === 0)) return err;
    const postBalances = accounts.map(balance);
    land(transaction, {
      err,
      // A transaction only moves lamports between its accounts, so the difference is the fee.
      feeLamports: sum(preBalances) - sum(postBalances),
      preBalances,
      postBalances,
      logs: meta.logs(),
      unitsConsumed: Number(meta.computeUnitsConsumed()),
      innerInstructions: innerInstructionsOf(meta),
    });
    return err;
  }

  const chain = {
    consensus: options.consensus,
    /** The machine that runs the programs. */
    svm,
    /** The most accounts that a transaction may name. Mainnet is to allow 96 (SIMD-0596). */
    maxAccounts: MAX_ACCOUNTS,
    slot: slots.slot,
    blockHeight: slots.blockHeight,
    latestBlockhash: slots.latestBlockhash,
    isBlockhashValid: slots.isBlockhashValid,
    advanceSlots: slots.advanceSlots,
    blockTime: slots.blockTime,
    /** The faucet's address, in base58. */
    faucet: faucet.address,
    sendFromFaucet: faucet.sendFromFaucet,
    transfer: faucet.transfer,
    /** Null if the account does not exist. An account without lamports does not exist. */
    account(of: string): ChainAccount | null {
      const account = inner.getAccount(toKeyBytes(of));
      return (
        account && {
          lamports: account.lamports(),
          owner: keyAt(Buffer.from(account.owner()), 0),
          data: account.data(),
          executable: account.executable(),
        }
      );
    },
    balance,
    setAccount,
    setBalance,
    rentExemptMinimum: (dataBytes: number) => svm.minimumBalanceForRentExemption(BigInt(dataBytes)),
    send,
    simulate,
    land,
    /** The transaction with that signature (base58), if it landed. */
    landed: (signature: string) => ledger.get(signature),
    /** The last {@link KEPT_TRANSACTIONS} landed transactions, oldest first. */
    ledger: () => [...ledger.values()],
    /** From now on, calls `listener` with each transaction right after it lands. */
    onLanded(listener: (transaction: SandboxTransaction) => void): void {
      listeners.push(listener);
    },
    /**
     * The price that `getRecentPrioritizationFees` reports, in micro-lamports per compute unit; 0
     * at first.
     */
    setPriorityFee(microLamports: number): void {
      priorityFee = microLamports;
    },
    priorityFee: () => priorityFee,
    /** Stops the slots. */
    close(): void {
      clearInterval(timer);
    },
  };
  return chain;
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

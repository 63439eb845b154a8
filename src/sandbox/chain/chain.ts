import { readFileSync } from "node:fs";
import { PublicKey } from "@solana/web3.js";
// Without the layer for kit, which decodes an address four times in each call.
import {
  Account,
  FailedTransactionMetadata,
  LiteSvm,
  Rent,
  type TransactionMetadata,
} from "litesvm/dist/internal.js";
import { toKeyBytes } from "../../chain/primitives/derive-address.ts";
import type { TransactionError } from "../../chain/rpc/rpc-results.ts";
import { createSlots, type SlotOptions } from "./slots.ts";
import { toTransactionError } from "./transaction-errors.ts";
import { toInstructionJson, type WireTransaction } from "./wire-transaction.ts";

export type ChainAccount = ReturnType<typeof toChainAccount>;

/**
 * A transaction in a block. It paid its fee even if it failed.
 */
export interface SandboxTransaction extends WireTransaction, Execution {
  readonly slot: number;
  /** Seconds since 1970. */
  readonly blockTime: number;
  readonly feeLamports: bigint;
  /**
   * Lamports before and after, in the order of the message's accounts; empty if the block omits
   * them.
   */
  readonly preBalances: readonly bigint[];
  readonly postBalances: readonly bigint[];
  /** The cross-program invocations, as `getTransaction` returns them. */
  readonly innerInstructions: ReturnType<typeof innerInstructionsOf>;
}

export type Chain = ReturnType<typeof createChain>;

/**
 * Mainnet's rent in lamports per byte. The rent-exempt minimum of an account without data is then
 * 650,240.
 */
const RENT = 5_080;

const SYSTEM_PROGRAM = "11111111111111111111111111111111";

/**
 * A chain with a single node. A transaction executes at once, in the current block, and is
 * `finalized` with a later block. Accounts have no history: reads return the current state at every
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
  // This module checks blockhashes and duplicates, because LiteSVM knows only the latest blockhash.
  const svm = new LiteSvm();
  svm.setBlockhashCheck(false);
  svm.setTransactionHistory(0n);
  svm.setRent(new Rent(BigInt(RENT), 1.0, 50));
  svm.withNativeMints();
  for (const { id, file } of options.programs) svm.addProgram(toKeyBytes(id), readFileSync(file));

  const slots = createSlots(svm, options);
  const ledger = new Map<string, SandboxTransaction>();

  const timer =
    options.slotMs > 0 ? setInterval(slots.advanceSlots, options.slotMs, 1).unref() : undefined;

  function balance(of: string): bigint {
    return svm.getBalance(toKeyBytes(of)) ?? 0n;
  }

  /** Creates or overwrites an account, without a transaction. */
  function setAccount(
    of: string,
    { lamports, owner, data }: Omit<ChainAccount, "executable">,
  ): void {
    svm.setAccount(toKeyBytes(of), new Account(lamports, data, toKeyBytes(owner), false, 0n));
  }

  /** Creates or overwrites an account of the System program, without data. */
  function setBalance(of: string, lamports: bigint): void {
    setAccount(of, { lamports, owner: SYSTEM_PROGRAM, data: new Uint8Array() });
  }

  /**
   * Executes a transaction without changing any state. Checks neither its signatures nor its
   * blockhash. `accounts`: those after the transaction, by address; empty after an error.
   */
  function simulate({ bytes }: WireTransaction) {
    svm.setSigverify(false);
    const result = svm.simulateVersionedTransaction(bytes);
    const accounts = result instanceof FailedTransactionMetadata ? [] : result.postAccounts();
    return {
      ...toExecution(result, result.meta()),
      accounts: new Map(
        accounts.map((each) => [toAddress(each.address), toChainAccount(each.account())]),
      ),
    };
  }

  /** Adds a transaction to the current block. */
  function land(transaction: Omit<SandboxTransaction, "slot" | "blockTime">): void {
    ledger.set(transaction.signature, {
      ...transaction,
      slot: slots.slot("processed"),
      blockTime: slots.blockTime(),
    });
  }

  /**
   * Executes a transaction. After an error, `landed` shows whether the transaction still paid its
   * fee.
   */
  function send(transaction: WireTransaction): TransactionError | null {
    const { bytes, signature, message } = transaction;
    if (!slots.isBlockhashValid(message.recentBlockhash)) return "BlockhashNotFound";
    if (ledger.has(signature)) return "AlreadyProcessed";

    const preBalances = message.accountKeys.map(balance);
    svm.setSigverify(true);
    const result = svm.sendVersionedTransaction(bytes);
    const meta = result instanceof FailedTransactionMetadata ? result.meta() : result;
    const execution = toExecution(result, meta);
    // LiteSVM sets the signature only if the transaction paid its fee.
    if (meta.signature().every((byte) => byte === 0)) return execution.err;
    const postBalances = message.accountKeys.map(balance);
    chain.land({
      ...transaction,
      ...execution,
      // A transaction only moves lamports between its accounts, so the difference is the fee.
      feeLamports: sum(preBalances) - sum(postBalances),
      preBalances,
      postBalances,
      innerInstructions: innerInstructionsOf(meta),
    });
    return execution.err;
  }

  const chain = {
    /** The machine that runs the programs. */
    svm,
    ...slots,
    genesisHash: slots.latestBlockhash("finalized").blockhash,
    /** Null if the account does not exist. An account without lamports does not exist. */
    account(of: string): ChainAccount | null {
      const account = svm.getAccount(toKeyBytes(of));
      return account && toChainAccount(account);
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
    /** All landed transactions, oldest first. */
    ledger: () => [...ledger.values()],
    /** Stops the slots. */
    close(): void {
      clearInterval(timer);
    },
  };
  return chain;
}

const toAddress = (bytes: Uint8Array) => new PublicKey(bytes).toBase58();

function toChainAccount(account: Account) {
  return {
    lamports: account.lamports(),
    owner: toAddress(account.owner()),
    data: account.data(),
    executable: account.executable(),
  };
}

/** What the programs did in a transaction. */
type Execution = ReturnType<typeof toExecution>;

function toExecution(result: object, meta: TransactionMetadata) {
  return {
    err: result instanceof FailedTransactionMetadata ? toTransactionError(result) : null,
    logs: meta.logs(),
    unitsConsumed: Number(meta.computeUnitsConsumed()),
  };
}

/** Omits the instructions of the message that invoked none. */
function innerInstructionsOf(meta: TransactionMetadata) {
  return meta.innerInstructions().flatMap((list, index) => {
    const instructions = list.map((inner) => {
      const instruction = inner.instruction();
      return toInstructionJson(
        instruction.programIdIndex(),
        instruction.accounts(),
        instruction.data(),
      );
    });
    return instructions.length > 0 ? [{ index, instructions }] : [];
  });
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}

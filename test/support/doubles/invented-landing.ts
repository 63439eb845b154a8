import type { TransactionError } from "../../../src/chain/rpc/transaction-error.ts";
import type { Chain, SandboxTransaction } from "../../../src/sandbox/chain/chain.ts";
import {
  decodeTransaction,
  type WireTransaction,
} from "../../../src/sandbox/chain/wire-transaction.ts";
import type { Methods } from "../../../src/sandbox/rpc/json-rpc.ts";
import { toTransactionJson } from "../../../src/sandbox/rpc/transaction-json.ts";

interface Invention {
  readonly err?: TransactionError | null;
  /** What each account, without the fee payer, is said to receive. */
  readonly gain?: bigint;
  /** How far ahead of the newest slot the transaction is said to have landed. */
  readonly slotsAhead?: number;
}

const FEE = 5_000n;

/**
 * Returns the methods of a node that drops each transaction, and invents at once how it landed.
 */
export const inventLandings =
  (chain: Chain, { err = null, gain = 0n, slotsAhead = 0 }: Invention) =>
  (honest: Methods): Methods => {
    const invented = new Map<string, SandboxTransaction>();

    function invent(transaction: WireTransaction): SandboxTransaction {
      const preBalances = transaction.message.staticAccounts.map((key) => chain.balance(key));
      return {
        ...transaction,
        slot: chain.slot("finalized") + slotsAhead,
        blockTime: chain.blockTime(),
        err,
        feeLamports: FEE,
        preBalances,
        postBalances: preBalances.map((lamports, i) =>
          i === 0 ? lamports - FEE : lamports + gain,
        ),
        logs: [],
        unitsConsumed: 0,
        innerInstructions: [],
      };
    }

    /** The node may be asked about a transaction that has landed before the node received it. */
    function inventedOf(
      signature: string,
      transaction: WireTransaction | undefined = chain.landed(signature),
    ): SandboxTransaction | undefined {
      const landed = invented.get(signature) ?? (transaction && invent(transaction));
      if (landed) invented.set(signature, landed);
      return landed;
    }

    return {
      ...honest,
      sendTransaction(params) {
        const transaction = decodeTransaction(Buffer.from((params as [string])[0], "base64"));
        inventedOf(transaction.signature, transaction);
        return transaction.signature;
      },
      getSignatureStatuses(params) {
        const truth = honest.getSignatureStatuses!(params) as { value: unknown[] };
        const value = (params as [string[]])[0].map((signature, i) => {
          const landed = inventedOf(signature);
          if (!landed) return truth.value[i];
          const status = err === null ? { Ok: null } : { Err: err };
          const { slot } = landed;
          return { slot, confirmations: null, err, status, confirmationStatus: "finalized" };
        });
        return { context: { slot: chain.slot("processed") + slotsAhead }, value };
      },
      getTransaction(params) {
        const landed = inventedOf((params as [string])[0]);
        return landed
          ? { ...toTransactionJson(landed), version: 1 }
          : honest.getTransaction!(params);
      },
    };
  };

/** Returns the methods of a node that drops transactions, and claims that each has expired. */
export const claimExpiry =
  (blocksAhead: number) =>
  (honest: Methods): Methods => ({
    ...honest,
    sendTransaction: (params) =>
      decodeTransaction(Buffer.from((params as [string])[0], "base64")).signature,
    getEpochInfo(params) {
      const truth = honest.getEpochInfo!(params) as { blockHeight: number };
      return { ...truth, blockHeight: truth.blockHeight + blocksAhead };
    },
    isBlockhashValid: (params) => ({
      ...(honest.isBlockhashValid!(params) as object),
      value: false,
    }),
    getSignatureStatuses(params) {
      const truth = honest.getSignatureStatuses!(params) as object;
      return { ...truth, value: (params as [string[]])[0].map(() => null) };
    },
  });

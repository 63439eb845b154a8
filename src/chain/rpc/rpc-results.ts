import { z } from "zod";
import { isBase58 } from "../../contract/base58.ts";
import { toLamports } from "../primitives/lamports.ts";

/** Also of 2^53 or more. */
const integer = z.number().nonnegative().refine(Number.isInteger);
/**
 * Undefined for 2^53 lamports or more, which JSON may have rounded. A transaction may name accounts
 * of exchanges: one such balance must not make the transaction unreadable.
 */
const balance = integer.transform((amount) =>
  Number.isSafeInteger(amount) ? toLamports(amount) : undefined,
);
/**
 * JSON may have rounded numbers of 2^53 or more. They count as the largest number below, so that no
 * balance is shown too high. Anybody can pay such a price, and name an account with such a balance.
 */
const saturating = integer.transform((amount) => Math.min(amount, Number.MAX_SAFE_INTEGER));
/**
 * A transaction's error in the form of JSON-RPC: a name, or an object with one name and its
 * details.
 */
export type TransactionError = string | Readonly<Record<string, unknown>>;
const transactionError = z.union([z.string(), z.record(z.string(), z.unknown())]).nullable();

const account = z
  .object({
    lamports: saturating.transform(toLamports),
    /** Its first bytes. */
    data: z.tuple([z.string(), z.literal("base64")]),
    /** The program that owns the account, in base58; undefined when the node omits it. */
    owner: z.string().optional(),
    /** The full size of the account's data, in bytes; undefined when the node omits it. */
    space: z.int().nonnegative().optional(),
    /** Whether the account is a program; undefined when the node omits it. */
    executable: z.boolean().optional(),
  })
  .transform(({ data: [text], ...others }) => ({ ...others, data: Buffer.from(text, "base64") }));
const accounts = z.array(account.nullable());
/** An account's lamports and the first bytes of its data. */
export type Account = Readonly<z.output<typeof account>>;

/** 32 bytes in base58. An invalid blockhash would fail all transactions, because they share it. */
const blockhash = z.string().refine((text) => isBase58(text, 32));
/** 64 bytes in base58. */
const signature = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{64,88}$/);
/**
 * Only needed to tell the kind of a transfer, so an unreadable list counts as absent. A transaction
 * may name thousands of accounts: checking their indexes with a schema would take most of the time
 * to read a history.
 */
const instructions = z
  .array(
    z.object({
      programIdIndex: z.int().nonnegative(),
      accounts: z.custom<readonly number[]>(
        (value) => Array.isArray(value) && value.every(Number.isSafeInteger),
      ),
      data: z.string().catch(""),
    }),
  )
  .nullish()
  .catch(undefined);
const withContext = <T extends z.ZodType>(value: T) =>
  z.object({ context: z.object({ slot: z.int() }), value });

/** The fields we use of each JSON-RPC method's result. */
export const RPC_RESULTS = {
  getMultipleAccounts: withContext(accounts),
  getLatestBlockhash: withContext(z.object({ blockhash, lastValidBlockHeight: z.int() })),
  getRecentPrioritizationFees: z.array(z.object({ slot: z.int(), prioritizationFee: saturating })),
  simulateTransaction: withContext(
    z.object({
      err: transactionError,
      unitsConsumed: z.int().catch(0),
      accounts: accounts.nullish(),
      logs: z.array(z.string()).catch([]),
      /** Nodes return it since Agave 3.0: https://github.com/anza-xyz/agave/pull/6750 */
      preBalances: z.array(balance).catch([]),
    }),
  ),
  sendTransaction: z.string(),
  getSignatureStatuses: withContext(
    z.array(
      z
        .object({
          err: transactionError,
          // A landing in an impossible slot would keep the account from being read.
          slot: z.int().max(1e12),
          confirmations: z.int().nullish(),
          confirmationStatus: z.string().nullish(),
        })
        .nullable(),
    ),
  ),
  isBlockhashValid: withContext(z.boolean()),
  getEpochInfo: z.object({ blockHeight: z.int(), absoluteSlot: z.int() }),
  getSlot: z.int(),
  getGenesisHash: z.string(),
  /**
   * The certificate of the block from which the cluster switched to Alpenglow; null before. Since
   * Agave 4.3: https://solana.com/docs/rpc/http/getaggenesiscert
   */
  getAgGenesisCert: z.object({ block: z.object({ slot: z.int() }) }).nullable(),
  getVersion: z.object({ "solana-core": z.string() }),
  getTransaction: z
    .object({
      slot: z.int().max(1e12),
      blockTime: z.int().nullish(),
      transaction: z.object({
        signatures: z.array(z.string()),
        message: z.object({ accountKeys: z.array(z.string()), instructions }),
      }),
      meta: z.object({
        err: transactionError,
        fee: z.int().nonnegative().transform(toLamports),
        preBalances: z.array(balance).catch([]),
        postBalances: z.array(balance).catch([]),
        loadedAddresses: z
          .object({ writable: z.array(z.string()), readonly: z.array(z.string()) })
          .nullish(),
        innerInstructions: z
          .array(z.object({ instructions: instructions.transform((list) => list ?? []) }))
          .nullish()
          .catch(undefined),
      }),
    })
    .nullable(),
  getSignaturesForAddress: z.array(
    z.object({
      signature,
      slot: z.int(),
      err: transactionError,
    }),
  ),
} satisfies Record<string, z.ZodType>;

export type RpcMethod = keyof typeof RPC_RESULTS;

export type RpcResult<M extends RpcMethod> = z.infer<(typeof RPC_RESULTS)[M]>;

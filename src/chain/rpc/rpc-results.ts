import { z } from "zod";
import { isBase58 } from "../../contract/base58.ts";
import { isObject } from "../../contract/parse-json.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";

const lamports = z.int().nonnegative().transform(toLamports);
/**
 * Undefined for 2^53 lamports or more, which JSON may have rounded. A transaction may name accounts
 * of exchanges: one such balance must not make the transaction unreadable.
 */
const balance = z
  .number()
  .nonnegative()
  .refine(Number.isInteger)
  .transform((amount) => (Number.isSafeInteger(amount) ? toLamports(amount) : undefined));
/** A price has no limit, and anybody can pay one that is too large for a number: it saturates. */
const price = z
  .number()
  .nonnegative()
  .refine(Number.isInteger)
  .transform((amount) => Math.min(amount, Number.MAX_SAFE_INTEGER));
/**
 * A transaction's error in the form of JSON-RPC: a name, or an object with one name and its
 * details.
 */
export type TransactionError = string | Readonly<Record<string, unknown>>;
const transactionError = z.union([z.string(), z.record(z.string(), z.unknown())]).nullable();

/** An account's lamports and the first bytes of its data. */
export interface Account {
  readonly lamports: Lamports;
  /**
   * Whether the account has 2^53 lamports or more. JSON may have rounded them, so they must not be
   * used.
   */
  readonly isRounded: boolean;
  readonly data: Buffer;
  /** The program that owns the account, in base58; undefined when the node omits it. */
  readonly owner?: string | undefined;
  /** The full size of the account's data, in bytes; undefined when the node omits it. */
  readonly space?: number | undefined;
  /** Whether the account is a program; undefined when the node omits it. */
  readonly executable?: boolean | undefined;
}

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

/** Returns undefined for a value that is not an account. */
function toAccount(value: unknown): Account | null | undefined {
  if (value === null) return null;
  if (!isObject(value)) return undefined;
  const { lamports, data, owner, space, executable } = value;
  const text: unknown = Array.isArray(data) ? data[0] : undefined;
  const isAccount =
    typeof lamports === "number" &&
    Number.isInteger(lamports) &&
    lamports >= 0 &&
    Array.isArray(data) &&
    data.length === 2 &&
    typeof text === "string" &&
    data[1] === "base64" &&
    (owner === undefined || typeof owner === "string") &&
    (space === undefined || isCount(space)) &&
    (executable === undefined || typeof executable === "boolean");
  if (!isAccount) return undefined;
  return {
    lamports: toLamports(BigInt(lamports)),
    isRounded: !Number.isSafeInteger(lamports),
    data: Buffer.from(text, "base64"),
    owner,
    space,
    executable,
  };
}

/**
 * Decoded by hand: a schema of the account would take a noticeable part of a lookup's time and
 * memory.
 */
const accounts = z
  .custom<readonly unknown[]>(Array.isArray)
  .transform((values, context): readonly (Account | null)[] => {
    const accounts = values.map(toAccount);
    if (accounts.every((account) => account !== undefined)) return accounts;
    context.addIssue("expected accounts");
    return z.NEVER;
  });

/** Only needed to see what the AMM leaves in its vault, so unreadable data counts as empty. */
const simulatedData = z
  .tuple([z.string(), z.literal("base64")])
  .transform(([data]) => Buffer.from(data, "base64"))
  .catch(Buffer.alloc(0));

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
        (value) => Array.isArray(value) && value.every(isCount),
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
  getRecentPrioritizationFees: z.array(z.object({ slot: z.int(), prioritizationFee: price })),
  simulateTransaction: withContext(
    z.object({
      err: transactionError,
      unitsConsumed: z.int().nullish(),
      accounts: z.array(z.object({ lamports, data: simulatedData }).nullable()).nullish(),
      logs: z.array(z.string()).nullish(),
      /** Nodes return it since Agave 3.0: https://github.com/anza-xyz/agave/pull/6750 */
      preBalances: z.array(balance).nullish(),
      /** Only on request. Left out for an instruction of the message that invoked none. */
      innerInstructions: z
        .array(z.object({ index: z.int().nonnegative(), instructions: z.array(z.unknown()) }))
        .nullish(),
    }),
  ),
  sendTransaction: z.string(),
  getSignatureStatuses: withContext(
    z.array(
      z
        .object({
          err: transactionError,
          slot: z.int(),
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
  getVersion: z.object({ "solana-core": z.string().max(40) }),
  getTransaction: z
    .object({
      slot: z.int(),
      blockTime: z.int().nullish(),
      transaction: z.object({
        signatures: z.array(z.string()),
        message: z.object({ accountKeys: z.array(z.string()), instructions }),
      }),
      meta: z.object({
        err: transactionError,
        fee: lamports,
        computeUnitsConsumed: z.int().nonnegative().nullish().catch(undefined),
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
      slot: z.int().nonnegative(),
      err: transactionError,
    }),
  ),
} satisfies Record<string, z.ZodType>;

export type RpcMethod = keyof typeof RPC_RESULTS;

export type RpcResult<M extends RpcMethod> = z.infer<(typeof RPC_RESULTS)[M]>;

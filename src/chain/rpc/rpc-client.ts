import { z } from "zod";
import { parseJson } from "../../upstream/parse-json.ts";
import type { Logger } from "../../observability/log.ts";
import { isOk, isTimeout, type CallUpstream, type UpstreamAnswer } from "../../upstream/http.ts";
import { createEndpoints, type Endpoint } from "./failover.ts";
import { toLamports, type Lamports } from "../lamports.ts";
import { RpcError } from "./rpc-error.ts";

/** A transaction's error as the chain tells it: a name, or an object of one name and its details. */
export type TransactionError = string | Readonly<Record<string, unknown>>;

/** What is known of a signature. */
export interface SignatureStatus {
  readonly err: TransactionError | null;
  /** Voted on by two thirds of the stake, or rooted: as good as final for what is paid out here. */
  readonly confirmed: boolean;
  /** In which it was executed. */
  readonly slot: number;
}

/** An account's lamports and the requested slice of its data. */
export interface Account {
  readonly lamports: Lamports;
  readonly data: Buffer;
  /** Whether it is a program; undefined when the node does not say. */
  readonly executable?: boolean | undefined;
}

/** A part of every account's data: `length` bytes from `offset`; nothing of accounts that have less. */
export interface DataSlice {
  readonly offset: number;
  readonly length: number;
}

const lamports = z.int().nonnegative().transform(toLamports);
const transactionError = z.union([z.string(), z.record(z.string(), z.unknown())]).nullable();
const data = z
  .tuple([z.string(), z.literal("base64")])
  .transform(([base64]) => Buffer.from(base64, "base64"));
const withContext = <T extends z.ZodType>(value: T) =>
  z.object({ context: z.object({ slot: z.int() }), value });

const RESULTS = {
  getMultipleAccounts: withContext(
    z.array(z.object({ lamports, data, executable: z.boolean().optional() }).nullable()),
  ),
  getMinimumBalanceForRentExemption: lamports,
  getLatestBlockhash: withContext(z.object({ blockhash: z.string(), lastValidBlockHeight: z.int() })),
  getRecentPrioritizationFees: z.array(z.object({ slot: z.int(), prioritizationFee: z.int() })),
  simulateTransaction: withContext(
    z.object({
      err: transactionError,
      unitsConsumed: z.int().nullish(),
      accounts: z.array(z.object({ lamports }).nullable()).nullish(),
      logs: z.array(z.string()).nullish(),
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
  getEpochInfo: z.object({ blockHeight: z.int(), absoluteSlot: z.int() }),
  getSlot: z.int(),
  getGenesisHash: z.string(),
  getTransaction: z
    .object({
      transaction: z.object({ message: z.object({ accountKeys: z.array(z.string()) }) }),
      meta: z.object({
        err: transactionError,
        fee: lamports,
        preBalances: z.array(lamports),
        postBalances: z.array(lamports),
        loadedAddresses: z.object({ writable: z.array(z.string()), readonly: z.array(z.string()) }).nullish(),
      }),
    })
    .nullable(),
} satisfies Record<string, z.ZodType>;

type Method = keyof typeof RESULTS;
type Result<M extends Method> = z.infer<(typeof RESULTS)[M]>;

/** The most accounts that one `getMultipleAccounts` takes. */
export const MAX_ACCOUNTS_A_CALL = 100;
/** The most signatures that one `getSignatureStatuses` takes. */
export const MAX_SIGNATURES_A_CALL = 256;

const CONFIRMED = { commitment: "confirmed" };
const FINALIZED = { commitment: "finalized" };

const ENVELOPE = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.int() }).nullish(),
});

export type Rpc = ReturnType<typeof createRpc>;

/**
 * The JSON-RPC methods this service uses, typed, with their errors kept, at the best of
 * several endpoints, each call within `timeoutMs`. Reads are at commitment `confirmed`, and never of a
 * state older than the last transaction of this service that is known to have landed.
 * Every method throws {@link RpcError}.
 */
export function createRpc(needs: {
  urls: readonly URL[];
  timeoutMs: number;
  callUpstream: CallUpstream;
  log: Logger;
}) {
  const { callUpstream } = needs;
  const endpoints = createEndpoints(needs);
  let lastId = 0;
  let newestLandedSlot = 0;

  function expectSlot(slot: number): void {
    newestLandedSlot = Math.max(newestLandedSlot, slot);
  }

  const fresh = () => (newestLandedSlot > 0 ? { ...CONFIRMED, minContextSlot: newestLandedSlot } : CONFIRMED);

  function call<M extends Method>(method: M, params: unknown[]): Promise<Result<M>> {
    return endpoints.call((endpoint, signal) => callAt(endpoint, method, params, signal));
  }

  async function callAt<M extends Method>(
    endpoint: Endpoint,
    method: M,
    params: unknown[],
    signal: AbortSignal,
  ): Promise<Result<M>> {
    const fail = (...[failure, rest]: [RpcError["failure"], ConstructorParameters<typeof RpcError>[3]?]) =>
      new RpcError(failure, method, endpoint.host, rest);
    const read = ({ status, text }: UpstreamAnswer): Result<M> => {
      // A refusal by status comes from what stands before the node, whatever its body says.
      if (!isOk(status)) throw fail("status", { code: status });
      const envelope = ENVELOPE.safeParse(parseJson(text));
      if (!envelope.success) throw fail("unreadable");
      if (envelope.data.error) throw fail("error", envelope.data.error);
      const result = RESULTS[method].safeParse(envelope.data.result);
      if (!result.success) throw fail("unreadable", { cause: result.error });
      return result.data as Result<M>;
    };
    const { url, headers } = endpoint;
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++lastId, method, params });
    try {
      return await callUpstream({ upstream: "chain", method, url, headers, body, signal }, read);
    } catch (cause) {
      if (cause instanceof RpcError) throw cause;
      throw fail(isTimeout(cause) ? "timeout" : "unreachable", { cause });
    }
  }

  return {
    /** From now on no read is of a state older than this slot's. */
    expectSlot,

    /** Up to 100 accounts in the order of `addresses`; undefined for one that does not exist. */
    async getAccounts(addresses: readonly string[], dataSlice: DataSlice): Promise<(Account | undefined)[]> {
      const options = { ...fresh(), encoding: "base64", dataSlice };
      const { value } = await call("getMultipleAccounts", [addresses, options]);
      if (value.length !== addresses.length) throw new RpcError("unreadable", "getMultipleAccounts", "");
      return value.map((found) => (found ? { ...found, data: cut(found.data, dataSlice) } : undefined));
    },

    /** Lamports that an account of `space` bytes must hold to exist. */
    getMinimumBalanceForRentExemption: (space: number) =>
      call("getMinimumBalanceForRentExemption", [space, CONFIRMED]),

    async getLatestBlockhash() {
      return (await call("getLatestBlockhash", [fresh()])).value;
    },

    /** The least price, in micro-lamports a compute unit, that got a transaction writing to all of `addresses` into each recent slot. */
    async getRecentPrices(addresses: readonly string[]): Promise<number[]> {
      const fees = await call("getRecentPrioritizationFees", [addresses]);
      return fees.map(({ prioritizationFee }) => prioritizationFee);
    },

    /**
     * Runs a transaction (base64, signed or not) against the present state, with a fresh blockhash in
     * place of its own. `balances` are those of `addresses` afterwards, where the node tells them.
     */
    async simulateTransaction(transaction: string, addresses: readonly string[]) {
      const { value } = await call("simulateTransaction", [
        transaction,
        {
          ...fresh(),
          encoding: "base64",
          sigVerify: false,
          replaceRecentBlockhash: true,
          accounts: { encoding: "base64", addresses },
        },
      ]);
      return {
        err: value.err,
        unitsConsumed: value.unitsConsumed ?? undefined,
        balances: value.accounts?.map((found) => found?.lamports ?? toLamports(0)),
        logs: value.logs ?? [],
      };
    },

    /** Hands a signed transaction (base64) to the node, which neither checks it first nor repeats it. */
    sendTransaction: (transaction: string) =>
      call("sendTransaction", [transaction, { encoding: "base64", skipPreflight: true, maxRetries: 0 }]),

    /** What is known of up to 256 signatures, in their order, and the slot up to which the node had looked. */
    async getSignatureStatuses(
      signatures: readonly string[],
      { searchTransactionHistory }: { searchTransactionHistory: boolean },
    ) {
      const options = { searchTransactionHistory };
      const { context, value } = await call("getSignatureStatuses", [signatures, options]);
      if (value.length !== signatures.length) throw new RpcError("unreadable", "getSignatureStatuses", "");
      const statuses = value.map((found): SignatureStatus | undefined => {
        if (!found) return undefined;
        const { err, confirmations, confirmationStatus } = found;
        // One that the node itself has not come to, once expected, would be waited for in every read: 0 expects nothing.
        const slot = found.slot <= context.slot ? found.slot : 0;
        const confirmed =
          confirmationStatus === "confirmed" || confirmationStatus === "finalized" || confirmations === null;
        if (confirmed) expectSlot(slot);
        return { err, confirmed, slot };
      });
      return { statuses, slot: context.slot };
    },

    /** The height of the newest finalized block and its slot, both as one node has them. */
    getFinalizedBlock: () => call("getEpochInfo", [FINALIZED]),

    /** Names the cluster. */
    getGenesisHash: () => call("getGenesisHash", []),

    /** The newest confirmed slot. */
    getSlot: () => call("getSlot", [CONFIRMED]),

    /**
     * A landed transaction's error, its fee, and the balances of every account in it before and after;
     * undefined while the node does not know it.
     */
    async getTransaction(signature: string) {
      const options = { ...CONFIRMED, encoding: "json", maxSupportedTransactionVersion: 1 };
      const found = await call("getTransaction", [signature, options]);
      if (!found) return undefined;
      const { err, fee, preBalances, postBalances, loadedAddresses } = found.meta;
      const keys = [
        ...found.transaction.message.accountKeys,
        ...(loadedAddresses?.writable ?? []),
        ...(loadedAddresses?.readonly ?? []),
      ];
      const balances = new Map(
        keys.map((key, i) => [key, { before: preBalances[i], after: postBalances[i] }] as const),
      );
      return { err, fee, balances };
    },
  };
}

/** Some nodes give all of an account's data, whatever slice was asked for. */
function cut(data: Buffer, { offset, length }: DataSlice): Buffer {
  return data.length > length ? data.subarray(offset, offset + length) : data;
}

import { z } from "zod";
import { toLamports, type Lamports } from "./lamports.ts";

/**
 * Why a call got no result: nobody answered (`unreachable`, `timeout`), somebody answered that is no
 * working JSON-RPC node (`status`, `unreadable`), or the node answered with an error of its own (`error`).
 */
export type RpcFailure = "unreachable" | "timeout" | "status" | "unreadable" | "error";

/** What a failed call tells. `host` is all of the address that is ever shown: the rest may hold a key. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly failure: RpcFailure;
  readonly method: string;
  /** The HTTP status (`status`) or the JSON-RPC error code (`error`). */
  readonly code: number | undefined;
  readonly #data: unknown;

  constructor(
    failure: RpcFailure,
    method: string,
    host: string,
    rest: { code?: number; data?: unknown; cause?: unknown } = {},
  ) {
    super(`${method} at ${host}: ${failure}${rest.code === undefined ? "" : ` ${rest.code}`}`, {
      cause: rest.cause,
    });
    this.failure = failure;
    this.method = method;
    this.code = rest.code;
    this.#data = rest.data;
  }

  /** `error.data` of the JSON-RPC error. No property, so that no log writes what a provider put there. */
  get data(): unknown {
    return this.#data;
  }
}

/** JSON-RPC errors that another endpoint, or the same one later, need not give: node behind, too many requests. */
const PASSING_ERROR_CODES = [-32005, -32016, -32429, 429];

/** A transaction's error as the chain tells it: a name, or an object of one name and its details. */
export type TransactionError = string | Readonly<Record<string, unknown>>;

interface SignatureStatus {
  readonly err: TransactionError | null;
  readonly slot: number;
  /** Voted on by two thirds of the stake, or rooted: as good as final for what is paid out here. */
  readonly confirmed: boolean;
}

const lamports = z.union([z.int(), z.bigint()]).transform(toLamports);
const transactionError = z.union([z.string(), z.record(z.string(), z.unknown())]).nullable();
const account = z.object({ lamports });
const withContext = <T extends z.ZodType>(value: T) =>
  z.object({ context: z.object({ slot: z.int() }), value });

const RESULTS = {
  getMultipleAccounts: withContext(z.array(account.nullable())),
  getMinimumBalanceForRentExemption: lamports,
  getLatestBlockhash: withContext(z.object({ blockhash: z.string(), lastValidBlockHeight: z.int() })),
  simulateTransaction: withContext(
    z.object({
      err: transactionError,
      unitsConsumed: z.int().nullish(),
      accounts: z.array(account.nullable()).nullish(),
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
  getTransaction: z
    .object({
      slot: z.int(),
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

/** The largest number of accounts one `getMultipleAccounts` takes. */
export const MAX_ACCOUNTS_A_CALL = 100;

const CONFIRMED = { commitment: "confirmed" };
const FINALIZED = { commitment: "finalized" };
const NO_DATA = { encoding: "base64", dataSlice: { offset: 0, length: 0 } };

export type Rpc = ReturnType<typeof createRpc>;

/**
 * The JSON-RPC methods this service uses, typed, with their errors kept: over `fetch`, at the first of
 * `urls` that answers, each attempt within `timeoutMs`. Reads are at commitment `confirmed`.
 * Every method throws {@link RpcError}.
 */
export function createRpc({ urls, timeoutMs }: { urls: readonly URL[]; timeoutMs: number }) {
  const endpoints = urls.map(toEndpoint);
  let lastId = 0;

  async function callAt<M extends Method>(
    endpoint: Endpoint,
    method: M,
    params: unknown[],
  ): Promise<Result<M>> {
    const fail = (failure: RpcFailure, rest?: ConstructorParameters<typeof RpcError>[3]) =>
      new RpcError(failure, method, endpoint.host, rest);
    let response: Response;
    let text: string;
    try {
      response = await fetch(endpoint.url, {
        method: "POST",
        headers: endpoint.headers,
        body: JSON.stringify({ jsonrpc: "2.0", id: ++lastId, method, params }),
        redirect: "error",
        signal: AbortSignal.timeout(timeoutMs),
      });
      text = await response.text();
    } catch (cause) {
      throw fail((cause as Error).name === "TimeoutError" ? "timeout" : "unreachable", { cause });
    }

    const envelope = ENVELOPE.safeParse(parseJson(text));
    // A refusal by status comes from what stands before the node, whatever its body says.
    if (!response.ok) throw fail("status", { code: response.status });
    if (!envelope.success) throw fail("unreadable");
    if (envelope.data.error) throw fail("error", envelope.data.error);
    const result = RESULTS[method].safeParse(envelope.data.result);
    if (!result.success) throw fail("unreadable", { cause: result.error });
    return result.data as Result<M>;
  }

  async function call<M extends Method>(method: M, params: unknown[]): Promise<Result<M>> {
    let failure: unknown;
    for (const endpoint of endpoints) {
      try {
        return await callAt(endpoint, method, params);
      } catch (error) {
        failure = error;
        if (!isPassing(error)) break;
      }
    }
    throw failure;
  }

  return {
    /** Lamports of up to 100 accounts, in the order of `keys`; an account that does not exist holds 0. */
    async getBalances(keys: readonly string[]): Promise<Lamports[]> {
      const { value } = await call("getMultipleAccounts", [keys, { ...CONFIRMED, ...NO_DATA }]);
      if (value.length !== keys.length) throw new RpcError("unreadable", "getMultipleAccounts", "");
      return value.map((found) => found?.lamports ?? toLamports(0));
    },

    /** Lamports that an account of `space` bytes must hold to exist. */
    getMinimumBalanceForRentExemption: (space: number) =>
      call("getMinimumBalanceForRentExemption", [space, CONFIRMED]),

    async getLatestBlockhash() {
      return (await call("getLatestBlockhash", [CONFIRMED])).value;
    },

    /**
     * Runs a transaction (base64, signed or not) against the present state, with a fresh blockhash in
     * place of its own. `balances` are those of `addresses` afterwards, where the node tells them.
     */
    async simulateTransaction(transaction: string, addresses: readonly string[]) {
      const { value } = await call("simulateTransaction", [
        transaction,
        {
          ...CONFIRMED,
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

    /** What is known of a signature, and the slot up to which the node had looked. */
    async getSignatureStatus(
      signature: string,
      { searchTransactionHistory }: { searchTransactionHistory: boolean },
    ) {
      const { context, value } = await call("getSignatureStatuses", [
        [signature],
        { searchTransactionHistory },
      ]);
      if (value.length !== 1) throw new RpcError("unreadable", "getSignatureStatuses", "");
      const found = value[0];
      const status: SignatureStatus | undefined = found
        ? {
            err: found.err,
            slot: found.slot,
            confirmed:
              found.confirmationStatus === "confirmed" ||
              found.confirmationStatus === "finalized" ||
              found.confirmations === null,
          }
        : undefined;
      return { status, slot: context.slot };
    },

    /** The height of the newest finalized block and its slot, both as one node has them. */
    getFinalizedBlock: () => call("getEpochInfo", [FINALIZED]),

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

interface Endpoint {
  readonly url: string;
  readonly host: string;
  readonly headers: Record<string, string>;
}

/** `fetch` refuses a user and password in the address, and quotes them: they go into a header. */
function toEndpoint(url: URL): Endpoint {
  const bare = new URL(url);
  bare.username = bare.password = "";
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (url.username || url.password) {
    const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.authorization = `Basic ${Buffer.from(credentials).toString("base64")}`;
  }
  return { url: bare.href, host: url.host, headers };
}

const ENVELOPE = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.int(), data: z.unknown().optional() }).nullish(),
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isPassing(error: unknown): boolean {
  if (!(error instanceof RpcError)) return false;
  return error.failure !== "error" || (error.code !== undefined && PASSING_ERROR_CODES.includes(error.code));
}

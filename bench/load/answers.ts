/**
 * Checks the form of all responses. Follows the contract and schema.graphql, not the
 * implementation.
 */
import { z } from "zod";
import { MOVED } from "../../src/contract/contract-error.ts";
import { SCOPES } from "../../src/fairness/budget.ts";
import { ERROR_CODES, type ErrorCode } from "../../src/contract/error-codes.ts";

const sol = z.string().regex(/^\d+\.\d{4}$/);
const lamports = z.string().regex(/^\d+$/);
const code = z.enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]]);
const message = z.string().min(1);
const BALANCE = z.strictObject({ vault: sol, pda: sol, total: sol });
const COIN = z.strictObject({
  mint: z.string(),
  stage: z.enum(["CURVE", "POOL", "SHARED"]),
  waiting: sol,
  amount: z.string().regex(/^\d+$/),
  quoteMint: z.string(),
  shareBps: z.int().min(0).max(10_000),
  collectable: z.boolean(),
  reason: z.string().nullable(),
});
export const WALLET = z.strictObject({
  handle: z.string(),
  socialId: z.string(),
  address: z.string(),
  balance: BALANCE,
});
export const LOOKUP = WALLET.extend({
  derivation: z.strictObject({
    program: z.string(),
    seeds: z.array(z.string()).length(2),
    bump: z.int().min(1).max(255),
  }),
  balance: BALANCE.extend({
    withdrawable: sol,
    lamports: z.strictObject({
      vault: lamports,
      pda: lamports,
      total: lamports,
      withdrawable: lamports,
    }),
  }),
  /** A field that the network omits is absent. */
  profile: z.strictObject({
    name: z.string().optional(),
    verified: z.boolean().optional(),
    followers: z.int().optional(),
    pictureUrl: z.string().optional(),
  }),
  /** Only if the request names coins; the same goes for each `remaining` below. */
  coins: z.array(COIN).optional(),
});
const LAST_COLLECT = z.strictObject({
  collected: sol,
  newBalance: sol,
  txSignature: z.string(),
  at: z.iso.datetime(),
});
const LEFT = z.strictObject({
  mint: z.string().nullable(),
  amount: sol.nullable(),
  lamports: z.string().nullable(),
  reason: z.string(),
});
/** What answers of a collect say besides. */
const OF_ACCOUNT = { left: z.array(LEFT), lastCollects: z.array(LAST_COLLECT).max(20) };
export const COLLECTED = z.strictObject({
  success: z.literal(true),
  collected: sol,
  newBalance: sol,
  txSignature: z.string(),
  remaining: sol.optional(),
  ...OF_ACCOUNT,
});
export const NOTHING = z.strictObject({
  success: z.literal(false),
  error: z.literal("NOTHING_TO_COLLECT"),
  message,
  collected: z.literal("0.0000"),
  remaining: z.literal("0.0000").optional(),
  moved: z.literal("no"),
  lastCollect: LAST_COLLECT.optional(),
  ...OF_ACCOUNT,
});
export const NOTHING_IN_GRAPHQL = NOTHING.omit({ moved: true });
const LOOKUP_ERROR = z.strictObject({ error: code, message });
const COLLECT_ERROR = LOOKUP_ERROR.extend({
  success: z.literal(false),
  moved: z.enum(MOVED),
  txSignature: z.string().optional(),
  retryAfterSeconds: z.int().min(1).optional(),
  scope: z.enum(SCOPES).optional(),
  left: OF_ACCOUNT.left.optional(),
  lastCollects: OF_ACCOUNT.lastCollects.optional(),
});
const ERROR = z.union([LOOKUP_ERROR, COLLECT_ERROR]);
export const NAMED_COIN = COIN.pick({ mint: true, shareBps: true, reason: true });
export const WALLETS = z.object({
  wallets: z.array(
    WALLET.extend({
      balance: BALANCE.nullable(),
      coins: z.array(NAMED_COIN).nullable(),
    }).nullable(),
  ),
});
const RESULT = z.object({
  success: z.boolean(),
  collected: sol,
  newBalance: sol.nullable(),
  txSignature: z.string().nullable(),
  error: z.string().nullable(),
  message: z.string().nullable(),
  ...OF_ACCOUNT,
});
export type CollectResult = z.infer<typeof RESULT>;
export const COLLECTS = z.object({ one: RESULT.nullable(), other: RESULT.nullable() }).nullable();
export const MANY_COLLECTS = z.object({ collectMany: z.array(RESULT.nullable()) });
const TRANSFER = z.object({ kind: z.string(), lamports: z.string(), signature: z.string() });
export type Transfer = z.infer<typeof TRANSFER>;
export const HISTORY = z.object({
  walletById: z.object({ history: z.object({ nodes: z.array(TRANSFER) }).nullable() }).nullable(),
});
export const GRAPHQL = z.strictObject({
  data: z.unknown().optional(),
  errors: z
    .array(
      z.object({ message, path: z.array(z.unknown()).optional(), extensions: z.object({ code }) }),
    )
    .optional(),
});

/** A response with a parsed body. */
export interface Answer {
  readonly status: number;
  readonly retryAfter: unknown;
  readonly body: unknown;
}

/**
 * Returns the error of a REST response. Throws unless its code, status and `Retry-After` are right.
 */
export function errorOf({ status, retryAfter, body }: Answer, allowed: readonly ErrorCode[]) {
  const { error, message } = ERROR.parse(body);
  assert(allowed.includes(error), `unexpected ${error}`, message);
  assert(status === ERROR_CODES[error].status, `${error} with status ${status}`);
  assert(
    ![429, 503].includes(status) || error === "SOCIAL_API_UNAVAILABLE" || Number(retryAfter) >= 1,
    `${error} without Retry-After`,
  );
  return { kind: "error", code: error, message } as const;
}

/**
 * Returns the errors of a GraphQL response, with their paths. Throws unless each code is allowed.
 * Only RATE_LIMITED, which refuses the whole request with 429, has no path.
 */
export function errorsOf({ status, body }: Answer, allowed: readonly ErrorCode[]) {
  const { errors = [] } = GRAPHQL.parse(body);
  assert(status === 200 || status === 429, `status ${status}`);
  return errors.map(({ path, message, extensions: { code } }) => {
    assert(allowed.includes(code), `unexpected ${code}`, message);
    assert(status === 429 ? code === "RATE_LIMITED" : path, "an error without path");
    return { kind: "error", path, code, message } as const;
  });
}

/**
 * Throws an error with this message unless the condition is true. `cause` is the detail to report.
 */
export function assert(condition: unknown, message: string, cause?: string): asserts condition {
  if (!condition) throw new Error(message, { cause });
}

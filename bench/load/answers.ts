/** Schemas of all responses, written from the contract and schema.graphql, not from the implementation. */
import { z } from "zod";
import { ERROR_CODES, type ErrorCode } from "../../src/contract/error-codes.ts";

const sol = z.string().regex(/^\d+\.\d{4}$/);
const code = z.enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]]);
const message = z.string().min(1);
const BALANCE = z.strictObject({ vault: sol, pda: sol, total: sol });
export const LOOKUP = z.strictObject({
  handle: z.string(),
  socialId: z.string(),
  address: z.string(),
  balance: BALANCE,
});
export const COLLECTED = z.strictObject({
  success: z.literal(true),
  collected: sol,
  newBalance: sol,
  txSignature: z.string(),
});
export const NOTHING = z.strictObject({
  success: z.literal(false),
  error: z.literal("NOTHING_TO_COLLECT"),
  message,
  collected: z.literal("0.0000"),
});
export const ERROR = z.strictObject({ error: code, message });
export const WALLETS = z.object({
  wallets: z.array(LOOKUP.extend({ balance: BALANCE.nullable() }).nullable()),
});
const RESULT = z.object({
  success: z.boolean(),
  collected: sol,
  newBalance: sol.nullable(),
  txSignature: z.string().nullable(),
  error: z.string().nullable(),
  message: z.string().nullable(),
});
export const COLLECTS = z.object({ one: RESULT.nullable(), other: RESULT.nullable() }).nullable();
export const GRAPHQL = z.strictObject({
  data: z.unknown().optional(),
  errors: z
    .array(z.object({ message, path: z.array(z.unknown()).optional(), extensions: z.object({ code }) }))
    .optional(),
});

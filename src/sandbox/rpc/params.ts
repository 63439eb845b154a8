import { isAddress, isSignature } from "@solana/kit";
import { z } from "zod";
import { fromBase58, toBase58 } from "../chain/base58.ts";
import type { Chain, ChainAccount } from "../chain/chain.ts";
import { invalidParams, JsonRpcError } from "./json-rpc.ts";
import type { Commitment } from "../chain/slots.ts";
import { decodeTransaction } from "../chain/transactions.ts";
import type { WireTransaction } from "../chain/transactions.ts";

export const addressParam = z.string().refine(isAddress, "not an address: 32 bytes in base58");
export const signatureParam = z.string().refine(isSignature, "not a signature: 64 bytes in base58");
export const lamportsParam = z.int().positive();

const commitment = z.enum(["processed", "confirmed", "finalized"]).nullish();

/** What nearly every method takes at its end. */
export const readFields = { commitment, minContextSlot: z.int().nonnegative().nullish() };
export const readConfig = z.object(readFields).nullish();
export type ReadConfig = z.infer<typeof readConfig>;

/** The commitment asked for; `finalized` if none, as on the real chain. */
export function commitmentOf(config: ReadConfig): Commitment {
  return config?.commitment ?? "finalized";
}

/** The slot that an answer stands for. Throws -32016 while it is before the one the caller wants at least. */
export function slotFor(chain: Chain, config: ReadConfig): number {
  const slot = chain.slot(commitmentOf(config));
  if (slot < (config?.minContextSlot ?? 0)) {
    throw new JsonRpcError(-32016, "Minimum context slot has not been reached", { contextSlot: slot });
  }
  return slot;
}

/** The version of the validator whose answers these are shaped like. */
export const API_VERSION = "3.0.6";

export function withContext(slot: number, value: unknown): object {
  return { context: { slot, apiVersion: API_VERSION }, value };
}

const accountEncoding = z.enum(["binary", "base58", "base64", "jsonParsed"]);
const dataSlice = z.object({ offset: z.int().nonnegative(), length: z.int().nonnegative() });

/** `binary` is what the real nodes take when none is given: base58, without its name beside it. */
export const accountFields = {
  encoding: accountEncoding.nullish(),
  dataSlice: dataSlice.nullish(),
};

interface AccountConfig {
  encoding?: z.infer<typeof accountEncoding> | null | undefined;
  dataSlice?: z.infer<typeof dataSlice> | null | undefined;
}

/** The real nodes give no more than this in base58, which is slow. */
const MAX_BASE58_BYTES = 128;

/** `jsonParsed` becomes base64, as at a real node for accounts whose program it can't parse. */
export function toAccountJson(
  account: ChainAccount | null,
  config: AccountConfig | null | undefined,
): object | null {
  if (!account) return null;
  const { offset, length } = config?.dataSlice ?? { offset: 0, length: account.data.length };
  return {
    lamports: account.lamports,
    owner: account.owner,
    data: encodeData(account.data.subarray(offset, offset + length), config?.encoding ?? "binary"),
    executable: account.executable,
    rentEpoch: RENT_EXEMPT,
    space: account.data.length,
  };
}

/** The rent epoch of every account that is exempt from rent, as all are: 2^64 - 1. */
const RENT_EXEMPT = 2n ** 64n - 1n;

function encodeData(data: Uint8Array, encoding: z.infer<typeof accountEncoding>): unknown {
  if (encoding === "base64" || encoding === "jsonParsed")
    return [Buffer.from(data).toString("base64"), "base64"];
  if (data.length > MAX_BASE58_BYTES) {
    throw new JsonRpcError(
      -32600,
      `Encoded binary (base 58) data should be less than ${MAX_BASE58_BYTES} bytes, please use Base64 encoding.`,
    );
  }
  const text = toBase58(data);
  return encoding === "binary" ? text : [text, "base58"];
}

/** How a transaction may be written; `base58` if nothing is said, as at the real nodes. */
export const wireEncoding = z.enum(["base58", "base64"]).nullish();

/** Throws -32602 for text that is no transaction, or none that this chain takes. */
export function decodeWire(text: string, encoding: z.infer<typeof wireEncoding>): WireTransaction {
  try {
    return decodeTransaction(encoding === "base64" ? Buffer.from(text, "base64") : fromBase58(text));
  } catch (error) {
    throw invalidParams(`invalid transaction: ${(error as Error).message}`);
  }
}

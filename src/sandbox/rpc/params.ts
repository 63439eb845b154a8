import { isAddress, isBlockhash, isSignature } from "@solana/kit";
import { z } from "zod";
import type { Chain } from "../chain/chain.ts";
import type { Commitment } from "../chain/slots.ts";
import { JsonRpcError } from "./json-rpc.ts";

export const addressParam = z.string().refine(isAddress, "not an address: 32 bytes in base58");
export const signatureParam = z.string().refine(isSignature, "not a signature: 64 bytes in base58");
export const blockhashParam = z.string().refine(isBlockhash, "not a blockhash: 32 bytes in base58");
export const lamportsParam = z.int().positive();

const commitment = z.enum(["processed", "confirmed", "finalized"]).nullish();

/** The fields that nearly every method accepts in its last parameter. */
export const configFields = { commitment, minContextSlot: z.int().nonnegative().nullish() };
export const configParam = z.object(configFields).nullish();
export type ConfigParam = z.infer<typeof configParam>;

/** The requested commitment; `finalized` by default, as on a real node. */
export function commitmentOf(config: ConfigParam): Commitment {
  return config?.commitment ?? "finalized";
}

/**
 * The slot to report as a response's context. Throws -32016 if the slot is below the requested
 * `minContextSlot`.
 */
export function slotFor(chain: Chain, config: ConfigParam): number {
  const slot = chain.slot(commitmentOf(config));
  if (slot < (config?.minContextSlot ?? 0)) {
    throw new JsonRpcError(-32016, "Minimum context slot has not been reached", {
      contextSlot: slot,
    });
  }
  return slot;
}

/** The validator version whose response shapes the sandbox copies. */
export const API_VERSION = "4.2.2";

export function withContext(slot: number, value: unknown): object {
  return { context: { slot, apiVersion: API_VERSION }, value };
}

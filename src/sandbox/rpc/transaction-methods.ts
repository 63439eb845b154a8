import { z } from "zod";
import type { Chain, LandedTransaction, Simulation } from "../chain/chain.ts";
import {
  accountFields,
  addressParam,
  commitmentOf,
  decodeWire,
  readFields,
  signatureParam,
  slotFor,
  toAccountJson,
  wireEncoding,
  withContext,
} from "./params.ts";
import type { ReadConfig } from "./params.ts";
import { invalidParams, JsonRpcError, method } from "./json-rpc.ts";
import type { Methods } from "./json-rpc.ts";
import type { Commitment } from "../chain/slots.ts";
import { toTransactionJson } from "./transaction-json.ts";
import { isSigned, withBlockhash } from "../chain/transactions.ts";
import type { WireTransaction } from "../chain/transactions.ts";

const MAX_STATUSES = 256;
/** In slots: for how long `getSignatureStatuses` knows a transaction without searching the history. */
const RECENT_SLOTS = 300;

const simulateConfig = z
  .object({
    ...readFields,
    encoding: wireEncoding,
    sigVerify: z.boolean().nullish(),
    replaceRecentBlockhash: z.boolean().nullish(),
    accounts: z.object({ encoding: accountFields.encoding, addresses: z.array(addressParam) }).nullish(),
  })
  .nullish();

const sendConfig = z
  .object({
    encoding: wireEncoding,
    skipPreflight: z.boolean().nullish(),
    preflightCommitment: readFields.commitment,
    minContextSlot: readFields.minContextSlot,
  })
  .nullish();

const encoding = z.enum(["json", "jsonParsed", "base58", "base64"]);
const transactionConfig = z
  .union([
    encoding.transform((encoding) => ({ encoding, commitment: null, maxSupportedTransactionVersion: null })),
    z.object({
      encoding: encoding.nullish(),
      commitment: readFields.commitment,
      maxSupportedTransactionVersion: z.int().nonnegative().nullish(),
    }),
  ])
  .nullish();

const signaturesConfig = z
  .object({
    ...readFields,
    limit: z.int().min(1).max(1000).nullish(),
    before: signatureParam.nullish(),
    until: signatureParam.nullish(),
  })
  .nullish();

/** The JSON-RPC methods that simulate, send and look up transactions. */
export function createTransactionMethods(chain: Chain): Methods {
  /** How sure a transaction is by now. */
  function statusOf({ slot }: LandedTransaction): Commitment {
    if (slot <= chain.slot("finalized")) return "finalized";
    return slot <= chain.slot("confirmed") ? "confirmed" : "processed";
  }

  /** The slot up to which a reader of the past sees; the real nodes give it no `processed` transactions. */
  function pastSlot(config: ReadConfig): number {
    if (config?.commitment === "processed") {
      throw invalidParams("Method does not support commitment below `confirmed`");
    }
    return slotFor(chain, config);
  }

  return {
    simulateTransaction: method(z.tuple([z.string(), simulateConfig]), ([text, config]) => {
      const slot = slotFor(chain, config);
      const commitment = commitmentOf(config);
      if (config?.sigVerify && config.replaceRecentBlockhash) {
        throw invalidParams("sigVerify may not be used with replaceRecentBlockhash");
      }
      let transaction = decodeWire(text, config?.encoding);
      if (config?.sigVerify) assertSigned(transaction);
      const replacement = config?.replaceRecentBlockhash ? chain.latestBlockhash(commitment) : null;
      if (replacement) transaction = withBlockhash(transaction, replacement.blockhash);

      const addresses = config?.accounts?.addresses ?? [];
      const known = transaction.message.staticAccounts.length;
      if (addresses.length > known) throw invalidParams(`Too many accounts provided; max ${known}`);
      const simulation = chain.simulate(transaction, commitment);
      const accounts = addresses.map((address) => {
        if (simulation.err !== null) return null;
        const account = simulation.accounts.get(address) ?? chain.account(address);
        return toAccountJson(account, { encoding: config?.accounts?.encoding ?? "base64" });
      });
      return withContext(slot, {
        ...toSimulationJson(simulation),
        accounts: config?.accounts ? accounts : null,
        replacementBlockhash: replacement,
      });
    }),

    sendTransaction: method(z.tuple([z.string(), sendConfig]), ([text, config]) => {
      const transaction = decodeWire(text, config?.encoding);
      assertSigned(transaction);
      if (!config?.skipPreflight) {
        const preflight = { commitment: config?.preflightCommitment, minContextSlot: config?.minContextSlot };
        slotFor(chain, preflight);
        const simulation = chain.simulate(transaction, commitmentOf(preflight));
        if (simulation.err !== null) {
          const message = `Transaction simulation failed: ${JSON.stringify(simulation.err)}`;
          throw new JsonRpcError(-32002, message, toSimulationJson(simulation));
        }
      }
      // What becomes of it is for `getSignatureStatuses` to tell: a real node does not know it yet.
      chain.send(transaction);
      return transaction.signature;
    }),

    getSignatureStatuses: method(
      z.tuple([
        z.array(signatureParam),
        z.object({ searchTransactionHistory: z.boolean().nullish() }).nullish(),
      ]),
      ([signatures, config]) => {
        if (signatures.length > MAX_STATUSES) {
          throw invalidParams(`Too many inputs provided; max ${MAX_STATUSES}`);
        }
        const slot = chain.slot("processed");
        const statuses = signatures.map((signature) => {
          const landed = chain.landed(signature);
          if (!landed) return null;
          if (!config?.searchTransactionHistory && slot - landed.slot > RECENT_SLOTS) return null;
          const confirmationStatus = statusOf(landed);
          return {
            slot: landed.slot,
            confirmations: confirmationStatus === "finalized" ? null : slot - landed.slot,
            err: landed.err,
            status: landed.err === null ? { Ok: null } : { Err: landed.err },
            confirmationStatus,
          };
        });
        return withContext(slot, statuses);
      },
    ),

    getTransaction: method(z.tuple([signatureParam, transactionConfig]), ([signature, config]) => {
      const newestSlot = pastSlot({ commitment: config?.commitment });
      const landed = chain.landed(signature);
      if (!landed || landed.slot > newestSlot) return null;
      const newestVersion = config?.maxSupportedTransactionVersion ?? null;
      const { version } = landed.message;
      if (version !== "legacy" && version > (newestVersion ?? -1)) {
        const message = `Transaction version (${version}) is not supported by the requesting client.`;
        throw new JsonRpcError(-32015, message);
      }
      return toTransactionJson(landed, config?.encoding ?? "json", newestVersion !== null);
    }),

    getSignaturesForAddress: method(z.tuple([addressParam, signaturesConfig]), ([address, config]) => {
      const newest = pastSlot(config);
      const seen = chain.ledger().filter(({ slot }) => slot <= newest);
      const newestFirst = seen.reverse();
      const positionOf = (wanted: string | null | undefined) =>
        newestFirst.findIndex(({ signature }) => signature === wanted);
      const end = positionOf(config?.until);
      return newestFirst
        .slice(positionOf(config?.before) + 1, end === -1 ? undefined : end)
        .filter(({ message }) => message.staticAccounts.some((account) => account === address))
        .slice(0, config?.limit ?? 1000)
        .map((landed) => {
          const { signature, slot, err, blockTime } = landed;
          return { signature, slot, err, memo: null, blockTime, confirmationStatus: statusOf(landed) };
        });
    }),
  };
}

function assertSigned(transaction: WireTransaction): void {
  if (!isSigned(transaction)) throw new JsonRpcError(-32003, "Transaction signature verification failure");
}

function toSimulationJson({ err, logs, unitsConsumed }: Simulation): object {
  return {
    err,
    logs,
    accounts: null,
    unitsConsumed,
    returnData: null,
    innerInstructions: null,
    replacementBlockhash: null,
  };
}

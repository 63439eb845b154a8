import { z } from "zod";
import type { Chain } from "../chain/chain.ts";
import {
  addressParam,
  API_VERSION,
  commitmentOf,
  lamportsParam,
  readConfig,
  slotFor,
  withContext,
} from "./params.ts";
import { addAmmCreatorFees, addCreatorFees } from "../chain/creator-fees.ts";
import type { LaunchpadPrograms } from "../chain/creator-fees.ts";
import { invalidParams, method } from "./json-rpc.ts";
import type { Methods } from "./json-rpc.ts";
import { decodeMessage, feeOf } from "../chain/transactions.ts";
import type { Message } from "../chain/transactions.ts";

const SLOTS_IN_EPOCH = 432_000;
/** How many slots `getRecentPrioritizationFees` looks back. */
const PRIORITY_FEE_SLOTS = 150;
const MAX_PRIORITY_FEE_ACCOUNTS = 128;

/** The JSON-RPC methods about the network as a whole, and those that only a sandbox has: new money. */
export function createNetworkMethods(chain: Chain, launchpad: LaunchpadPrograms): Methods {
  const genesisHash = chain.latestBlockhash("finalized").blockhash;

  function transactionCount(upToSlot: number): number {
    return chain.ledger().filter(({ slot }) => slot <= upToSlot).length;
  }

  return {
    getSlot: method(z.tuple([readConfig]), ([config]) => slotFor(chain, config)),

    getBlockHeight: method(z.tuple([readConfig]), ([config]) => {
      slotFor(chain, config);
      return chain.blockHeight(commitmentOf(config));
    }),

    getLatestBlockhash: method(z.tuple([readConfig]), ([config]) =>
      withContext(slotFor(chain, config), chain.latestBlockhash(commitmentOf(config))),
    ),

    isBlockhashValid: method(z.tuple([z.string(), readConfig]), ([blockhash, config]) =>
      withContext(slotFor(chain, config), chain.isBlockhashValid(blockhash, commitmentOf(config))),
    ),

    getFeeForMessage: method(z.tuple([z.string(), readConfig]), ([text, config]) => {
      const message = decodeWireMessage(text);
      const valid = chain.isBlockhashValid(message.lifetimeToken, commitmentOf(config));
      return withContext(slotFor(chain, config), valid ? feeOf(message) : null);
    }),

    getRecentPrioritizationFees: method(
      z.tuple([z.array(addressParam).max(MAX_PRIORITY_FEE_ACCOUNTS).nullish()]),
      () => {
        const newest = chain.slot("processed");
        return Array.from({ length: PRIORITY_FEE_SLOTS }, (_, i) => {
          const slot = newest - PRIORITY_FEE_SLOTS + 1 + i;
          return { slot, prioritizationFee: chain.priorityFee(slot) };
        });
      },
    ),

    getEpochInfo: method(z.tuple([readConfig]), ([config]) => {
      const absoluteSlot = slotFor(chain, config);
      return {
        absoluteSlot,
        blockHeight: chain.blockHeight(commitmentOf(config)),
        epoch: Math.floor(absoluteSlot / SLOTS_IN_EPOCH),
        slotIndex: absoluteSlot % SLOTS_IN_EPOCH,
        slotsInEpoch: SLOTS_IN_EPOCH,
        transactionCount: transactionCount(absoluteSlot),
      };
    }),

    getTransactionCount: method(z.tuple([readConfig]), ([config]) =>
      transactionCount(slotFor(chain, config)),
    ),

    getGenesisHash: method(z.tuple([]), () => genesisHash),

    getVersion: method(z.tuple([]), () => ({ "solana-core": API_VERSION, "feature-set": 0 })),

    getHealth: method(z.tuple([]), () => "ok"),

    requestAirdrop: method(z.tuple([addressParam, lamportsParam, readConfig]), ([to, lamports]) =>
      chain.transfer(to, BigInt(lamports)),
    ),

    /**
     * `[creator, lamports]`: fees from the trading of a token whose creator is that address; with `"amm"`
     * after them, of one that has left the bonding curve.
     */
    sandboxAddCreatorFees: method(
      z.tuple([addressParam, lamportsParam, z.literal("amm").nullish()]),
      ([creator, lamports, amm]) => {
        const add = amm ? addAmmCreatorFees : addCreatorFees;
        return add(chain, launchpad, creator, BigInt(lamports));
      },
    ),
  };
}

function decodeWireMessage(text: string): Message {
  try {
    return decodeMessage(Buffer.from(text, "base64"));
  } catch (error) {
    throw invalidParams(`invalid message: ${(error as Error).message}`);
  }
}

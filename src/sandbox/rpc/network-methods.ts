import { z } from "zod";
import type { Chain } from "../chain/chain.ts";
import { method } from "./json-rpc.ts";
import type { Methods } from "./json-rpc.ts";
import {
  addressParam,
  API_VERSION,
  blockhashParam,
  commitmentOf,
  configParam,
  slotFor,
  withContext,
} from "./params.ts";

const SLOTS_PER_EPOCH = 432_000;
/** The number of slots that `getRecentPrioritizationFees` covers. */
const PRIORITY_FEE_SLOTS = 150;
const MAX_PRIORITY_FEE_ACCOUNTS = 128;

/** The only commitment with which the gateway calls `isBlockhashValid`. */
const processedConfig = z.object({ commitment: z.literal("processed") });

/** The JSON-RPC methods about the chain as a whole: slots, blockhashes, prices. */
export function createNetworkMethods(chain: Chain): Methods {
  const genesisHash = chain.latestBlockhash("finalized").blockhash;
  const certificate = {
    block: { slot: chain.slot("finalized"), blockId: Array(32).fill(0) },
    signature: { signature: Array(192).fill(0), bitmap: [] },
  };

  return {
    getSlot: method(z.tuple([configParam]), ([config]) => slotFor(chain, config)),

    getLatestBlockhash: method(z.tuple([configParam]), ([config]) =>
      withContext(slotFor(chain, config), chain.latestBlockhash(commitmentOf(config))),
    ),

    isBlockhashValid: method(z.tuple([blockhashParam, processedConfig]), ([blockhash, config]) =>
      withContext(slotFor(chain, config), chain.isBlockhashValid(blockhash)),
    ),

    getRecentPrioritizationFees: method(
      z.tuple([z.array(addressParam).max(MAX_PRIORITY_FEE_ACCOUNTS).nullish()]),
      () => {
        const latestSlot = chain.slot("processed");
        return Array.from({ length: PRIORITY_FEE_SLOTS }, (_, i) => ({
          slot: latestSlot - PRIORITY_FEE_SLOTS + 1 + i,
          prioritizationFee: chain.priorityFee(),
        }));
      },
    ),

    getEpochInfo: method(z.tuple([configParam]), ([config]) => {
      const absoluteSlot = slotFor(chain, config);
      return {
        absoluteSlot,
        blockHeight: chain.blockHeight(commitmentOf(config)),
        epoch: Math.floor(absoluteSlot / SLOTS_PER_EPOCH),
        slotIndex: absoluteSlot % SLOTS_PER_EPOCH,
        slotsInEpoch: SLOTS_PER_EPOCH,
      };
    }),

    getVersion: method(z.tuple([]), () => ({ "solana-core": API_VERSION })),

    getGenesisHash: method(z.tuple([]), () => genesisHash),

    getAgGenesisCert: method(z.tuple([]), () =>
      chain.consensus === "alpenglow" ? certificate : null,
    ),
  };
}
